package hlog

import (
	"sync"
	"unsafe"

	"github.com/ostrodb/ostro/engine/record"
)

// order numbers the batches of all heads, so that recovery can tell which of
// them are missing (see Resume).
//
// Invariants:
//   - A number is drawn and its seal is stored under mu. So who holds mu sees the
//     seals of all numbers up to last, and a process that dies in between leaves
//     no later number behind.
//   - A batch gets its number after all that it builds on: what a session reads
//     from another head is sealed before the session goes on, and what it writes
//     then is sealed later.
//
// mu is held for a few stores. It is taken under a head's lock, and no lock is
// taken under it.
type order struct {
	mu    sync.Mutex
	last  record.BatchID
	sides []*Segment // closed side segments, whose files await their sync
}

// reach is how far the seals of a head go.
type reach struct {
	open   *Segment // nil if the head is in none
	off    uint32   // the end of the last seal in it
	pos    uint64
	closed []*Segment // whose files await their sync
}

// putSeal ends the batch that is open, as the next of the log. The caller holds
// the lock.
func (h *Head) putSeal(closed bool) {
	room := unsafe.Slice((*byte)(unsafe.Add(h.base, h.off)), record.SealBytes)
	record.TouchSeal(room) // A fault on its page must not keep other heads waiting.
	h.off += record.SealBytes
	if h.side != nil {
		h.putSideSeal(room, closed)
		return
	}

	o := &h.log.order
	o.mu.Lock()
	o.last++
	n := o.last
	h.chain.PutSeal(room, n, closed)
	h.seg.end.Store(h.off)
	h.reach.off, h.reach.pos = h.off, h.start+uint64(h.off)
	if h.reach.open = h.seg; closed {
		h.reach.open = nil
		h.reach.closed = append(h.reach.closed, h.seg)
		h.seg.batch = n
	}
	o.mu.Unlock()

	h.batch.Store(uint64(n))
	h.dead.add(h.seg.Slot, record.SealBytes)
}

// reached tells the last number that was drawn, and for each head how far its
// seals go at that moment. It takes the closed segments: the caller syncs them.
func (l *Log) reached(heads []*Head) (record.BatchID, []reach) {
	all := make([]reach, len(heads))
	l.order.mu.Lock()
	defer l.order.mu.Unlock()
	for i, h := range heads {
		all[i] = h.reach
		h.reach.closed = nil
	}
	return l.order.last, all
}

// takeSides takes the closed segments of sides: the caller syncs them, or puts them back.
func (o *order) takeSides() []*Segment {
	o.mu.Lock()
	defer o.mu.Unlock()
	some := o.sides
	o.sides = nil
	return some
}

func (o *order) putBackSides(some []*Segment) {
	if len(some) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sides = append(some, o.sides...)
}

// Last is the batch that was sealed last.
func (l *Log) Last() record.BatchID {
	l.order.mu.Lock()
	defer l.order.mu.Unlock()
	return l.order.last
}

// Synced is the last batch up to which all are safe from loss of power.
func (l *Log) Synced() record.BatchID { return record.BatchID(l.synced.Load()) }

// Durable tells whether batch n, which is sealed, survives what the log
// promises to survive. That is so only once all before it do: without them
// recovery drops it.
func (l *Log) Durable(n record.BatchID) bool { return !l.late || l.durable(n) }

// durable is Durable of a log for which a seal is not enough.
func (l *Log) durable(n record.BatchID) bool {
	return (!l.opts.SyncEach || n <= l.Synced()) && (l.opts.Replicator == nil || n <= l.Copied())
}
