package index

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// Word is an entry as somebody has seen it. It is good inside one guard.
type Word struct {
	at  *uint64 // nil: there was none
	was uint64
}

// FirstWord is First for who wants to know later whether the entry is still as it was.
func (ix *Index) FirstWord(p record.Place, w *Word) record.Address {
	return ix.dir.find(p).primary(p).firstWord(p, w)
}

// FirstWordAt is FirstWord in the bucket that Approach found. A word that is no answer is never the same.
func FirstWordAt(at Spot, p record.Place, w *Word) record.Address {
	a := at.firstWord(p, w)
	if a == 0 {
		w.Forget()
	}
	return a
}

func (b bucket) firstWord(p record.Place, w *Word) record.Address {
	m, locked := b.match(p)
	if m == 0 || locked {
		return 0
	}
	w.at = (*uint64)(b.pointer(m.nextOffset()))
	w.was = atomic.LoadUint64(w.at)
	if w.was&lockedBit != 0 || !sameTop(w.was, p) {
		return 0
	}
	return addressOf(w.was)
}

// Same tells whether the entry still is what was seen: nothing was written or removed, no transaction holds it, and its
// sub-table is the one that counts, for the words of one that was replaced are frozen.
func (w *Word) Same() bool { return w.at != nil && atomic.LoadUint64(w.at) == w.was }

// Address is where the entry leads, if it still is what was seen; 0 if not.
func (w *Word) Address() record.Address {
	if !w.Same() {
		return 0
	}
	return addressOf(w.was)
}

// Forget makes it one that is never the same.
func (w *Word) Forget() { w.at = nil }
