package store

import "context"

// A tombstone stays while there are segments from before it. Those may have no
// garbage, or belong to a head that nobody writes to: then no cleaner comes, and
// tombstones of keys that live briefly would fill the log. So when they take
// much of it, what is oldest is moved to the front.

const (
	// tombstoneShare is how much of the closed log tombstones may take.
	tombstoneShare = 0.25
	// moveUp is how many segments are moved in a turn.
	moveUp = 4
)

// outlive moves old segments to the front while tombstones take much of the log.
func (st *Store) outlive(ctx context.Context) {
	for range moveUp {
		if ctx.Err() != nil || st.tombstones() <= tombstoneShare {
			return
		}
		if !st.moveOldest() {
			return
		}
		st.epoch.Drain()
	}
}

// tombstones is the share of tombstones that cannot go yet.
func (st *Store) tombstones() float64 {
	var used, stuck int64
	oldest := st.log.Oldest(0)
	for _, s := range st.log.Segments() {
		if !s.Closed() {
			continue
		}
		used += int64(st.opts.SegmentBytes)
		if s.Horizon() > oldest {
			stuck += s.Tombstones.Load()
		}
	}
	if used < 8*int64(st.opts.SegmentBytes) {
		return 0
	}
	return float64(stuck) / float64(used)
}

// moveOldest relocates the oldest segment, or closes it if it is open.
func (st *Store) moveOldest() bool {
	first := st.log.ByID(st.log.Oldest(0))
	if first == nil {
		return false
	}
	if !first.Closed() {
		return st.log.Retire(first)
	}
	if first.Vacated() || !st.log.AtRest(first) {
		return false // It will be gone, or may go, in a moment.
	}
	if err := st.clean(first); err != nil {
		st.complain("cleaning failed", err, first)
		return false
	}
	return true
}
