package store

import (
	"context"
	"sync"
	"time"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// sweeper goes through the index in the background: for expired records, and
// for entries of truncated tables.
type sweeper struct {
	mu     sync.Mutex
	asked  bool             // tables were dropped
	below  record.SegmentID // all records in segments below are of dropped tables
	cursor uint64
}

// ask lets the next sweep look for entries of dropped tables.
func (sw *sweeper) ask() {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.asked = true
}

// askBelow is ask, when everything in segments below id is dropped.
func (sw *sweeper) askBelow(id record.SegmentID) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.asked, sw.below = true, max(sw.below, id)
}

func (sw *sweeper) take() (asked bool, below record.SegmentID) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	asked = sw.asked
	sw.asked = false
	return asked, sw.below
}

const (
	sweepEvery   = 100 * time.Millisecond
	sweepBuckets = 64 // inside one guard
	sweepSteps   = 32 // a turn
)

// sweepLoop sweeps a little at a time for expired records, and at once, though
// in small steps, after a truncation.
func (st *Store) sweepLoop(ctx context.Context) {
	background.Quiet()
	ss, err := st.NewSession()
	if err != nil {
		st.opts.Logger.Error("expired records stay until they are read", "error", err)
		return
	}
	defer ss.Close()
	every(ctx, sweepEvery, nil, func() {
		if asked, below := st.sweep.take(); asked {
			st.sweepDropped(ctx, ss, below)
			st.auditDropped(ctx, ss)
			st.room.ask()
		}
		st.sweepExpired(ctx, ss)
		st.auditExpired(ctx, ss)
		st.dropDoomed(ctx, ss)
		st.clients.sweep(st.opts.Now())
	})
}

// sweepDropped removes all entries of tables that are gone.
func (st *Store) sweepDropped(ctx context.Context, ss *Session, below record.SegmentID) {
	for cursor := uint64(0); ctx.Err() == nil; {
		ss.Begin()
		cursor = st.ix.Step(cursor, sweepBuckets, func(pr *index.Probe) bool {
			ss.dropEntry(pr, below)
			return true
		})
		ss.End()
		if cursor == 0 {
			return
		}
	}
}

// dropEntry removes the entry that a walk stands at if its table is gone. A
// cold one is left to the audit unless its whole segment is known to be dead.
func (ss *Session) dropEntry(pr *index.Probe, below record.SegmentID) {
	a := pr.Address()
	if a == 0 || pr.Locked() {
		return
	}
	p, ok := ss.st.log.Entry(a)
	if !ok {
		if s := ss.st.log.Segment(a.Slot()); s != nil && s.ID < below && ss.st.ix.Remove(pr) {
			ss.st.log.Doom(s) // It dies as a whole.
		}
		return
	}
	if ss.st.tableGone(p) && ss.st.ix.Remove(pr) {
		ss.head.Died(a, uint32(p.Length()))
	}
}

// tableGone tells whether the table of a record, or of a chunk's record, was dropped.
func (st *Store) tableGone(p record.Ptr) bool {
	t := p.Table()
	if t == chunkTable {
		_, of, _, ok := chunkBody(p.Value())
		return ok && st.tables.byID(of) == nil
	}
	return st.tables.byID(t) == nil
}

// sweepExpired looks at a part of the index for expired records. The part is
// larger while many are found.
func (st *Store) sweepExpired(ctx context.Context, ss *Session) {
	if st.expiring() == 0 {
		return
	}
	for range sweepSteps {
		seen, gone := 0, 0
		var over []index.Probe
		ss.Begin()
		st.sweep.cursor = st.ix.Step(st.sweep.cursor, sweepBuckets, func(pr *index.Probe) bool {
			seen++
			if ss.isOver(pr) {
				over = append(over, *pr)
			}
			return true
		})
		ss.aloud(len(over), func(i int) { gone += b2i(ss.dropExpired(&over[i])) })
		ss.End()
		if ctx.Err() != nil || gone*10 < seen && seen > 0 {
			return
		}
	}
}

func (st *Store) expiring() (n int64) {
	for t := range st.tables.all() {
		_, expires := t.sum()
		n += expires
	}
	_, results := st.tables.completions.sum()
	return n + results
}

// noteExpired counts a key whose time was over.
func (st *Store) noteExpired(k *Key) {
	if k.Table != completionTable {
		st.work.expired.Add(1)
	}
}

// aloud runs f n times and seals what it wrote. A sweep is quiet work, and
// writing takes the lock of a head that a serving session may share.
func (ss *Session) aloud(n int, f func(i int)) {
	if n == 0 {
		return
	}
	background.Aloud(func() {
		for i := range n {
			f(i)
		}
		ss.Seal()
	})
}

// isOver tells whether the record that a walk stands at seems to be expired.
func (ss *Session) isOver(pr *index.Probe) bool {
	a := pr.Address()
	if a == 0 || pr.Locked() {
		return false
	}
	p, ok := ss.st.log.Entry(a)
	return ok && isRecord(p) && ss.expired(p)
}

// dropExpired removes the record that a walk stood at if its time is over.
func (ss *Session) dropExpired(pr *index.Probe) bool {
	a := pr.Address()
	if a == 0 || pr.Locked() {
		return false
	}
	p, ok := ss.st.log.Entry(a)
	if !ok || !isRecord(p) {
		return false
	}
	ver := versionOf(p) // Before the look at its time: what is removed is what was looked at.
	t := ss.st.tables.byID(p.Table())
	if t == nil || !ss.expired(p) || ss.st.others(p) {
		return false
	}
	k := Key{Place: placeOf(p), Table: p.Table(), Bytes: p.Key(), in: t}
	if ss.remove(&k, pr, p, ver) != OK {
		return false
	}
	ss.st.noteExpired(&k)
	return true
}
