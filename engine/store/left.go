package store

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// leftPlaces are floors of places that this store had and gave away. What the log has of them
// from before is history, whoever has them next.
type leftPlaces struct {
	mu     sync.Mutex
	floors atomic.Pointer[[]record.Floor]
}

// leave notes that nothing of some ranges is in the index any more. A cleaning under way did not know that when it began, and moves
// tombstones of theirs to where the log goes on: its end is waited for, so that they are history, too.
func (st *Store) leave(ctx context.Context, ranges []Range) error {
	var spans []record.Span
	for _, r := range ranges {
		spans = append(spans, record.Span(r))
	}
	if err := lockWithin(ctx, &st.cleaning); err != nil {
		return err // A blob tier that does not answer may hold it up for minutes.
	}
	defer st.cleaning.Unlock()
	batch, segment := st.Position()
	l := &st.left
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := st.log.Oldest(0)
	all := slices.DeleteFunc(slices.Clone(l.list()), func(f record.Floor) bool { return f.Segment <= oldest })
	all = append(all, record.Floor{Spans: spans, Batch: batch, Segment: segment})
	l.floors.Store(&all)
	return nil
}

func (l *leftPlaces) list() []record.Floor {
	if all := l.floors.Load(); all != nil {
		return *all
	}
	return nil
}

// lookForFloors finds out what of the segment does not count. Only tombstones have to be
// looked at: the index has nothing of what was given away.
func (c *cleaning) lookForFloors() {
	floors := append(slices.Clip(c.st.opts.Floors), c.st.left.list()...)
	if len(floors) == 0 || c.seg.Tombstones.Load() == 0 {
		return
	}
	c.ss.Begin()
	defer c.ss.End()
	b := c.cold
	if b == nil {
		b = c.st.log.Bytes(c.seg)
	}
	c.above = record.NewAbove(floors, c.seg.ID, b)
}

// lockWithin locks, or gives up when ctx is over.
func lockWithin(ctx context.Context, mu *sync.Mutex) error {
	locked := make(chan struct{})
	go func() {
		mu.Lock()
		select {
		case locked <- struct{}{}:
		case <-ctx.Done():
			mu.Unlock()
		}
	}()
	select {
	case <-locked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
