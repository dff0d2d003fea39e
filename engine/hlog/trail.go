package hlog

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// trail is what a head has sealed and some copy still lacks, oldest first. The
// head adds to it under its lock; whoever raises marks takes from it.
type trail struct {
	oldest atomic.Uint64 // the first batch in it; the highest number if there is none
	mu     sync.Mutex
	queue  []sealedPiece
	first  int // those before it are taken
}

// sealedPiece ends in a seal.
type sealedPiece struct {
	n   record.BatchID
	seg *Segment
	off uint32 // behind the seal
	pos uint64 // of the head there
}

const noBatch = math.MaxUint64

func (t *trail) add(p sealedPiece) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == len(t.queue) {
		t.queue, t.first = t.queue[:0], 0
		t.oldest.Store(uint64(p.n))
	}
	t.queue = append(t.queue, p)
}

// take removes what batch w has passed, and hands over the last piece of each
// segment in it.
func (t *trail) take(w record.BatchID, f func(*sealedPiece)) {
	if t.oldest.Load() > uint64(w) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.first
	for end < len(t.queue) && t.queue[end].n <= w {
		end++
	}
	for i := t.first; i < end; i++ {
		if i+1 == end || t.queue[i+1].seg != t.queue[i].seg {
			f(&t.queue[i])
		}
	}
	t.first = end
	t.tidy()
}

// tidy says what is the oldest now, and gives room back that is mostly taken.
func (t *trail) tidy() {
	if t.first == len(t.queue) {
		t.oldest.Store(noBatch)
		return
	}
	t.oldest.Store(uint64(t.queue[t.first].n))
	if t.first > 64 && t.first > len(t.queue)/2 {
		n := copy(t.queue, t.queue[t.first:])
		clear(t.queue[n:])
		t.queue, t.first = t.queue[:n], 0
	}
}

// handOver gives the batch that was just sealed to the replicator. It is on the
// trail before: the answer may come at once.
func (h *Head) handOver(from uint32, closed bool) {
	n := h.Batch()
	h.trail.add(sealedPiece{n, h.seg, h.off, h.start + uint64(h.off)})
	h.log.opts.Replicator.Sealed(h.seg.ID, from, h.off, n, closed)
}

// copiedUpTo raises the marks of what batch w has passed.
func (h *Head) copiedUpTo(w record.BatchID) {
	h.trail.take(w, func(p *sealedPiece) {
		h.log.noteCopied(p.seg, p.off)
		h.copiedTo.Store(p.pos)
	})
}

// noteCopied notes that s is copied up to off.
func (l *Log) noteCopied(s *Segment, off uint32) {
	if l.opts.SyncEach {
		raiseMark(&s.copiedTo, off)
		off = min(off, s.syncedTo.Load())
	}
	l.slots.at(s.Slot).raiseStable(off)
}

// noteSynced notes that s is safe from loss of power up to off.
func (l *Log) noteSynced(s *Segment, off uint32) {
	if l.opts.Replicator != nil {
		raiseMark(&s.syncedTo, off)
		if !l.opts.SyncEach {
			return // Nothing is promised before it is copied, and that is enough.
		}
		off = min(off, s.copiedTo.Load())
	}
	l.slots.at(s.Slot).raiseStable(off)
}

// raiseMark lifts a mark that only grows.
func raiseMark(m *atomic.Uint32, to uint32) {
	for old := m.Load(); old < to; old = m.Load() {
		if m.CompareAndSwap(old, to) {
			return
		}
	}
}
