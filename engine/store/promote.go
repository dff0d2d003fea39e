package store

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// A record that was read from a cold tier, or from a segment that a cache is
// about to forget, comes back to a head when it is read a second time soon: one read in a scan of cold data must not push what is
// hot out of memory, nor write the log anew.

const revisitSlots = 1 << 16

// revisits remembers, roughly, which cold addresses were read of late.
type revisits [revisitSlots]atomic.Uint64

// again tells whether a was read before, not long ago, and notes this time.
func (r *revisits) again(a record.Address) bool {
	slot := &r[(uint64(a)*0x9E3779B97F4A7C15)>>48]
	return slot.Swap(uint64(a)) == uint64(a)
}

// touched is called for a record that was read: it may have earned a place at
// a head.
func (ss *Session) touched(pr *index.Probe, p record.Ptr) {
	a := pr.Address()
	switch {
	case ss.tx.open:
	case ss.st.log.Aging(a):
		if ss.st.revisits.again(a) {
			ss.promote(pr, p)
		}
	case len(ss.stash) > 0:
		if _, ok := ss.st.log.Entry(a); !ok && ss.st.revisits.again(a) {
			ss.promote(pr, p)
		}
	}
}

// promote appends a copy of the frozen record p to the session's head and
// points the index at it. It is the same record: its version stays.
func (ss *Session) promote(pr *index.Probe, p record.Ptr) {
	at, n := pr.Address(), p.Length()
	if ss.st.log.SegmentBytes()/64 < n {
		return
	}
	h := ss.head
	h.Lock()
	defer h.Unlock()
	a, room, err := h.Reserve(n)
	if err != nil {
		return // It stays where it is.
	}
	copy(room, p.Bytes())
	if !ss.st.ix.Update(pr, a) {
		h.Undo(n)
		return
	}
	h.Keep(n)
	h.Died(at, uint32(n))
}
