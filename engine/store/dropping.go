package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
)

// The copies of a cleaned segment elsewhere must not count any more before its
// file goes. To say so takes an answer, for which nobody waits: many segments
// are dropped at once, in the background, and buried when that is done.

const (
	dropRest     = time.Second     // after a failure
	dropPatience = 2 * time.Second // of a store that closes
)

// dropping is the one Drop that is under way.
type dropping struct {
	busy  atomic.Bool
	again atomic.Int64 // not before this time, in Unix milliseconds
}

// settled tells whether what took the place of a condemned segment's records is
// as durable as they were.
func (st *Store) settled(c *condemned) bool {
	return st.log.Synced() >= c.after && (st.opts.Replicator == nil || st.log.Copied() >= c.after)
}

// dropCopies begins to drop the copies of the condemned segments that are ready
// for it. The caller holds the cleaning lock.
func (st *Store) dropCopies() {
	d := &st.dropping
	if st.opts.Replicator == nil || time.Now().UnixMilli() < d.again.Load() {
		return
	}
	segs := st.droppable()
	if len(segs) == 0 || st.closing.Load() || d.busy.Swap(true) {
		return
	}
	st.spawn(st.ctx, func(ctx context.Context) {
		defer d.busy.Store(false)
		if err := st.log.Drop(ctx, segs...); err != nil {
			d.again.Store(time.Now().Add(dropRest).UnixMilli())
			if ctx.Err() == nil {
				st.opts.Logger.Warn("copies of cleaned segments could not be dropped; it is tried again", "segments", len(segs), "error", err)
			}
			return
		}
		st.room.ask()
	})
}

// Keep has copies of cleaned segments stay for as long as it is on: another node reads them, segment by segment, and
// one that was dropped under its hands would have it begin again, as often as the cleaner comes by. The cleaner goes
// on and frees memory; files and copies go afterwards.
func (st *Store) Keep(on bool) {
	if st.keep.Swap(on) && !on {
		st.room.ask()
	}
}

// droppable lists the condemned segments whose copies may go. The caller holds
// the cleaning lock.
func (st *Store) droppable() (segs []*hlog.Segment) {
	if st.keep.Load() {
		return nil
	}
	for s, c := range st.condemned {
		if s.Held() && st.settled(&c) {
			segs = append(segs, s)
		}
	}
	return segs
}

// dropAtEnd is dropCopies of a store that closes: it waits for the answer, and
// before that for copies of what took the segments' place. The caller holds the
// cleaning lock.
func (st *Store) dropAtEnd() error {
	if st.opts.Replicator == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(st.ctx, dropPatience)
	defer cancel()
	if !st.log.AwaitCopied(ctx, st.log.Last()) {
		return errors.New("what took their place is not copied yet")
	}
	return st.log.Drop(ctx, st.droppable()...)
}
