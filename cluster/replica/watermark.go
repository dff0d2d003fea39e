package replica

import (
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// watermark finds the batch up to which all are in every copy. Batches of
// different heads become complete in any order; the mark moves when none below
// is missing.
//
// Invariant: the bit of n is set if and only if n is above last and complete.
// The ring has a bit for every number from last on to the highest that is
// complete; it grows when a head is far behind the others.
//
// last may be read by anybody; the rest belongs to the holder of mu. Who seals
// never takes it: only those who find completions do.
type watermark struct {
	last atomic.Uint64

	mu   sync.Mutex
	ring []uint64
}

const firstRingWords = 1 << 8 // 16,384 batches

// begin sets the mark when a log begins.
func (w *watermark) begin(n record.BatchID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ring = make([]uint64, firstRingWords)
	w.last.Store(uint64(n))
}

func (w *watermark) batch() record.BatchID { return record.BatchID(w.last.Load()) }

// complete notes all batches whose seals lie in b, which begins with an entry
// and ends after a seal. It tells whether the mark has moved.
func (w *watermark) complete(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(b) > 0 {
		p := record.PtrOf(b)
		if p.Type() == record.TypeSeal {
			w.note(uint64(p.Batch()))
		}
		b = b[p.Length():]
	}
	return w.move()
}

func (w *watermark) note(n uint64) {
	last := w.last.Load()
	if n <= last {
		return // It was complete before a copy was replaced.
	}
	for n-last >= w.bits() {
		w.grow(last)
	}
	n %= w.bits()
	w.ring[n/64] |= 1 << (n % 64)
}

func (w *watermark) bits() uint64 { return 64 * uint64(len(w.ring)) }

func (w *watermark) grow(last uint64) {
	old, had := w.ring, w.bits()
	w.ring = make([]uint64, 2*len(old))
	for n := last + 1; n < last+had; n++ {
		if at := n % had; old[at/64]&(1<<(at%64)) != 0 {
			at = n % w.bits()
			w.ring[at/64] |= 1 << (at % 64)
		}
	}
}

// move takes the mark over all that is complete without a gap.
func (w *watermark) move() bool {
	from := w.last.Load()
	n := from
	for {
		at := (n + 1) % w.bits()
		bit := uint64(1) << (at % 64)
		if w.ring[at/64]&bit == 0 {
			break
		}
		w.ring[at/64] &^= bit
		n++
	}
	w.last.Store(n)
	return n != from
}

// seals is what was found in a part of a segment.
type seals struct {
	end   uint32 // of the last seal; 0: there is none
	last  record.BatchID
	whole uint32 // the end of the last entry that is there whole
}

// sealsIn finds the last seal of b that ends within limit, from an entry on. b ends after a seal.
func sealsIn(b []byte, from, limit uint32) (found seals) {
	found.whole = from
	for found.whole < limit {
		p := record.PtrOf(b[found.whole:])
		end := found.whole + uint32(p.Length())
		if end > limit {
			break
		}
		found.whole = end
		if p.Type() == record.TypeSeal {
			found.end, found.last = end, p.Batch()
		}
	}
	return found
}
