package hlog

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
	"github.com/ostrodb/ostro/internal/invariant"
)

// Head is an open end of the log. A session appends to one head; usually no
// other session does, so its lock is never contended.
//
// All fields above the atomics belong to whoever holds the lock. A position
// counts all bytes that ever went through the head, over all its segments.
type Head struct {
	mu    sync.Mutex
	log   *Log
	n     int
	side  *Side // nil: its batches have an order
	seg   *Segment
	base  unsafe.Pointer
	off   uint32 // where the next entry goes
	limit uint32 // where the seal must still fit
	from  uint32 // where the unsealed batch began
	chain record.Chain
	start uint64 // position of the open segment's first byte

	beyond bool // the open segment is beyond what memory allows

	reach reach // belongs to the holder of log.order
	trail trail

	sealed   atomic.Uint64 // position up to which batches are sealed
	batch    atomic.Uint64 // number of the last of them
	syncedTo atomic.Uint64 // position up to which they are safe from loss of power
	copiedTo atomic.Uint64 // position up to which they are in every copy
	dead     deadBytes
}

func newHead(l *Log, n int) (*Head, error) {
	dead, err := newDeadBytes()
	h := &Head{log: l, n: n, dead: dead}
	h.trail.oldest.Store(noBatch)
	return h, err
}

// Lock takes the head for a few appends. Nothing that waits may be done under it.
func (h *Head) Lock() { h.mu.Lock() }

// Unlock gives the head back.
func (h *Head) Unlock() { h.mu.Unlock() }

// Reserve gives room for an entry of n bytes, in a new segment if need be. The
// entry becomes part of the log by Keep; without it the room is given to the
// next Reserve. The caller holds the lock.
func (h *Head) Reserve(n int) (record.Address, []byte, error) {
	if f := h.log.failed.Load(); f != nil {
		return 0, nil, f.write
	}
	if h.beyond {
		if err := h.log.opts.Room(false); err != nil {
			return 0, nil, err
		}
		h.beyond = false
	}
	if h.full(n) {
		if err := h.roll(); err != nil {
			return 0, nil, err
		}
	}
	a, b := h.room(n)
	return a, b, nil
}

// ReserveBeyond is Reserve after it was refused for want of room: for what must
// be written to make some. What it opens is for nothing else.
func (h *Head) ReserveBeyond(n int) (record.Address, []byte, error) {
	if h.full(n) {
		if h.side != nil {
			return 0, nil, ErrNoRoom // Nothing that it writes makes room.
		}
		next, err := h.log.takeReserve()
		if err != nil {
			return 0, nil, err
		}
		h.leave()
		h.open(next)
		h.beyond = true
	}
	a, b := h.room(n)
	return a, b, nil
}

// full tells whether n bytes do not fit the open segment.
func (h *Head) full(n int) bool {
	return h.seg == nil || uint64(h.off)+uint64(n) > uint64(h.limit)
}

func (h *Head) room(n int) (record.Address, []byte) {
	return record.MakeAddress(h.seg.Slot, h.off), unsafe.Slice((*byte)(unsafe.Add(h.base, h.off)), n)
}

// Keep makes the n bytes of the last Reserve, one or several entries, part of
// the log.
func (h *Head) Keep(n int) {
	if h.log.opts.Logged {
		h.chain.AddAll(record.At(h.base, h.off), n)
	}
	h.off += uint32(n)
	if invariant.Enabled {
		invariant.Check(int(h.off) <= h.log.opts.SegmentBytes, "segment %d of %d bytes was filled to %d", h.seg.ID, h.log.opts.SegmentBytes, h.off)
	}
	h.seg.end.Store(h.off)
}

// Seal ends the batch of what was kept since the last one: from here on a
// crash keeps all of it or, if the seal did not make it, none.
// It returns the number of the head's last batch, which Durable speaks of.
func (h *Head) Seal() record.BatchID {
	if h.seg != nil && h.off != h.from {
		if h.log.opts.Logged {
			h.putSeal(false)
		}
		h.published(false)
	}
	return h.Batch()
}

// published tells everybody that the batch is whole, and whether it is the last
// of its segment.
func (h *Head) published(closed bool) {
	h.sealed.Store(h.start + uint64(h.off))
	from := h.from
	h.from = h.off
	switch {
	case h.side != nil: // It is stable anyway, and copied as a whole.
	case !h.log.late:
		h.log.slots.at(h.seg.Slot).raiseStable(h.off)
	case h.log.opts.Replicator != nil:
		h.handOver(from, closed)
	}
}

// roll closes the open segment and opens the next.
func (h *Head) roll() (err error) {
	if h.side == nil {
		return h.rollOn()
	}
	// Who appends to a side may be quiet, and must not have the log's locks then.
	background.Aloud(func() { err = h.rollOn() })
	return err
}

func (h *Head) rollOn() error {
	next, err := h.next()
	if err != nil {
		return err
	}
	h.leave()
	h.open(next)
	return nil
}

// next gives the segment to go on with. The cleaner's comes out of nobody's
// share: it takes memory to make room.
func (h *Head) next() (*Segment, error) {
	switch {
	case h.side != nil:
		return h.log.takeSide()
	case h == h.log.survivor:
		return h.log.takeReserve()
	}
	return h.log.takeSpare()
}

// leave closes the open segment, if there is one.
func (h *Head) leave() {
	s := h.seg
	if s == nil {
		return
	}
	if h.log.opts.Logged {
		h.putSeal(true)
		h.published(true)
		h.log.slots.at(s.Slot).setState(stateFrozen)
	} else {
		h.published(true)
	}
	h.start += uint64(h.off)
	h.seg, h.base, h.off, h.from, h.limit = nil, nil, 0, 0, 0
	h.beyond = false
	h.log.closed(s)
	if h.side != nil {
		h.log.queueSide(h.side, s)
	}
}

// open begins a segment with its header entry.
func (h *Head) open(s *Segment) {
	l := h.log
	l.mu.Lock()
	s.head, s.start = h, h.start
	l.mu.Unlock()
	h.seg, h.base = s, l.slots.at(s.Slot).loadBase()
	h.limit = uint32(l.limit())
	h.chain = record.NewChain(s.ID)
	header := unsafe.Slice((*byte)(h.base), record.SegmentHeaderBytes)
	n := record.EncodeSegmentHeader(header, l.opts.LogID, s.ID, s.created, uint32(l.opts.SegmentBytes))
	h.dead.add(s.Slot, int32(n))
	h.Keep(n)
}

// Rotate closes the open segment even if there is room left in it.
func (h *Head) Rotate() {
	h.Lock()
	defer h.Unlock()
	h.leave()
}

// Retire closes an open segment even if there is room left in it; false if no
// head is at it.
func (l *Log) Retire(s *Segment) bool {
	l.mu.Lock()
	h := s.head
	l.mu.Unlock()
	if h == nil {
		return false
	}
	h.Lock()
	defer h.Unlock()
	if h.seg == s {
		h.leave()
	}
	return true
}

// SealAll ends the open batch of every head.
func (l *Log) SealAll() {
	for _, h := range l.allHeads() {
		h.Lock()
		h.Seal()
		h.Unlock()
	}
}

// Died notes that n bytes at a are dead.
func (h *Head) Died(a record.Address, n uint32) { h.dead.add(a.Slot(), int32(n)) }

// Sealed is the position up to which the head's batches are sealed.
func (h *Head) Sealed() uint64 { return h.sealed.Load() }

// Batch is the number of the last batch that was sealed; 0 if none was yet, or
// if the log is volatile.
func (h *Head) Batch() record.BatchID { return record.BatchID(h.batch.Load()) }

// Position tells which head wrote the entry at a, and the position after which
// the entry counts as sealed. It returns nil for entries that are stable anyway, or
// as good as that: the cleaner takes from segments at rest, so if copies elsewhere
// are what counts, they have what it relocates, until they have it where it is now.
func (l *Log) Position(a record.Address) (*Head, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.bySlot[a.Slot()]
	if s == nil || s.head == nil || s.head.side != nil || s.head == l.survivor && l.opts.Replicator != nil && !l.opts.SyncEach {
		return nil, 0
	}
	return s.head, s.start + uint64(a.Offset()) + 1
}

// Undo gives the n bytes of the last Reserve back. They are zeroed again, for
// whatever follows the last seal of a mapped segment must look unwritten.
func (h *Head) Undo(n int) {
	if h.log.opts.Logged {
		clear(unsafe.Slice((*byte)(unsafe.Add(h.base, h.off)), n))
	}
}

// NoteTombstone counts n bytes of tombstones in the open segment: dropping it
// has to look at them.
func (h *Head) NoteTombstone(n int) { h.seg.Tombstones.Add(int64(n)) }
