package store

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// graves hold, per stripe of the placement space, the mark of the last tombstone
// that was written, until it is settled. That a key is absent may rest on it as
// a value rests on its record: who is told so waits for it, and who builds on it
// comes after it in the order of batches.
//
// Invariant: of two tombstones of a stripe on different heads the former is
// sealed before the latter takes its place. So the latter has the higher batch,
// and who waits for it waits for both.
//
// A mark may be of a tombstone that did not come to be, for somebody else was
// faster. It hides the one before it, so who meets it waits for all that is
// sealed by then.
type graves [floorStripes]atomic.Uint64

func (g *graves) of(p record.Place) *atomic.Uint64 { return &g[uint64(p)%floorStripes] }

// noteAbsence is note for a key at p that is not there.
func (ss *Session) noteAbsence(p record.Place) {
	g := ss.st.graves.of(p)
	m := g.Load()
	switch {
	case m == 0:
	case ss.st.log.Settled(hlog.Mark(m)):
		g.CompareAndSwap(m, 0)
	default:
		h, pos := ss.st.log.Marked(hlog.Mark(m))
		ss.lean(h, pos)
		if h.Sealed() < pos {
			ss.need = max(ss.need, ss.st.log.Last())
		}
	}
}

// openGrave prepares for a tombstone of a key at p. It returns the one whose
// place that may take. The caller does not hold its head.
func (ss *Session) openGrave(p record.Place) uint64 {
	m := ss.st.graves.of(p).Load()
	if m != 0 {
		ss.sealFor(ss.st.log.Marked(hlog.Mark(m)))
	}
	return m
}

// markGrave marks a tombstone at a, which is about to be shown; false if a session
// of another head was faster. The caller holds its head.
func (ss *Session) markGrave(p record.Place, was uint64, a record.Address) bool {
	g := ss.st.graves.of(p)
	now := g.Load()
	if now != was {
		if h, _ := ss.st.log.Marked(hlog.Mark(now)); now != 0 && h != ss.head {
			return false
		}
	}
	return g.CompareAndSwap(now, uint64(ss.head.Mark(a)))
}
