package meta

import (
	"context"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Floor says from where on a log counts for some ranges.
type Floor = view.Floor

// raised is the floors after a newer one, which stands in for all that others say of its places.
func raised(floors []Floor, f Floor) []Floor {
	var out []Floor
	for _, old := range floors {
		if old.Ranges = old.Ranges.Subtract(f.Ranges); len(old.Ranges) > 0 {
			out = append(out, old)
		}
	}
	return append(out, f)
}

// DropFloors forgets floors of this node's log below which there is nothing left: oldest
// is the lowest of its segments.
func (m *Member) DropFloors(ctx context.Context, oldest record.SegmentID) error {
	return m.change(ctx, func(e *edit) error {
		l := e.seen.Logs[m.Node.Log]
		kept := slices.DeleteFunc(slices.Clone(l.Floors), func(f Floor) bool { return f.Segment <= oldest })
		if len(kept) == len(l.Floors) {
			return nil
		}
		l.Floors = kept
		return e.put(keyLog(m.Node.Log), l)
	})
}

// Retracted says that this node has dropped what left it: neither its index nor what its cleaner
// keeps has any of the ranges, and what its log has of them lies before batch and segment. From now on
// it may be given them again.
func (m *Member) Retracted(ctx context.Context, ranges view.Ranges, batch record.BatchID, segment record.SegmentID) error {
	return m.change(ctx, func(e *edit) error {
		l := e.seen.Logs[m.Node.Log]
		gone := l.Leaving.Intersect(ranges)
		if len(gone) == 0 {
			return nil
		}
		l.Leaving = l.Leaving.Subtract(gone)
		l.Floors = raised(l.Floors, Floor{Ranges: gone, Batch: batch, Segment: segment})
		return e.put(keyLog(m.Node.Log), l)
	})
}

// StillLeaving returns those of some ranges of which this node has not said that it dropped them, and sees to it that nothing
// says so but a later Retracted: one whose answer did not come may have been noted, or be on its way.
func (m *Member) StillLeaving(ctx context.Context, ranges view.Ranges) (left view.Ranges, err error) {
	err = m.changeLog(ctx, func(l *Log) error {
		left = l.Leaving.Intersect(ranges)
		return nil
	})
	return left, err
}

// leave notes that a log has records of ranges that nobody needs any more.
func (e *edit) leave(log record.LogID, ranges view.Ranges) error {
	l := e.log(log)
	if l.ID != log || l.Retired {
		return nil
	}
	l.Leaving = l.Leaving.Union(ranges)
	return e.putLog(l)
}
