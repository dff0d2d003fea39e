package store

import (
	"slices"

	"github.com/ostrodb/ostro/engine/record"
)

// A store that opens in the middle of an arrival is told so by Options.Arriving. Until Arrive
// is called again, or Arrived, those places are expected: nobody serves them, but what the
// log says of removed keys is known, for imports, and the cleaner keeps it.

// expect begins to expect the places that the options name.
func (st *Store) expect() {
	if len(st.opts.Arriving) == 0 {
		return
	}
	all := []*Arrival{{st: st, ranges: st.opts.Arriving, removed: newSettled()}}
	st.arriving.open.Store(&all)
}

// expectMore has the log keep what it says of removed keys in some places until Arrived: they
// are served, but other logs have their records as well.
func (st *Store) expectMore(ranges []Range) {
	if len(ranges) == 0 {
		return
	}
	st.arriving.mu.Lock()
	defer st.arriving.mu.Unlock()
	all := append(slices.Clone(st.arriving.list()), &Arrival{st: st, ranges: ranges, removed: newSettled()})
	st.arriving.open.Store(&all)
}

// without gives an expected arrival that is so without some places; nil if none is left.
func (a *Arrival) without(ranges []Range) *Arrival {
	left := a.ranges
	for _, r := range ranges {
		left = subtract(left, r)
	}
	if len(left) == 0 {
		return nil
	}
	return &Arrival{st: a.st, ranges: left, removed: a.removed}
}

// Arrived says that nothing arrives any more at places that Options.Arriving named, and for
// which Arrive was not called: their source died, say, and its log was imported. And that what an import
// brought aside has its copies, and the logs that it came from are not needed any more.
func (st *Store) Arrived(ranges []Range) {
	st.arriving.edit(func(a *Arrival) *Arrival {
		if a.puller != nil || !overlap(a.ranges, ranges) {
			return a
		}
		return a.without(ranges)
	})
}

// ArrivedBut is Arrived for all that was expected before the call, but for places that left names. It is how nothing stays expected that
// somebody had no occasion to end: until then each removal there is remembered, and whoever has the places next would be told of it.
func (st *Store) ArrivedBut(left func() []Range) {
	before := st.arriving.list()
	if st.arriving.expected() == 0 {
		return
	}
	keep := left()
	st.arriving.edit(func(a *Arrival) *Arrival {
		if a.puller != nil || !slices.Contains(before, a) {
			return a // What is expected since then left may not know of.
		}
		switch still := intersect(a.ranges, keep); {
		case len(still) == 0:
			return nil
		case slices.Equal(still, a.ranges):
			return a
		default:
			return &Arrival{st: a.st, ranges: still, removed: a.removed}
		}
	})
}

// expected is how many nobody pulls.
func (as *arrivals) expected() (n int64) {
	for _, a := range as.list() {
		if a.puller == nil {
			n++
		}
	}
	return n
}

// settleReplayed notes that replay has found p to be the last of its key, a tombstone.
func (st *Store) settleReplayed(place record.Place, p record.Ptr) {
	for _, a := range st.arriving.list() {
		if a.owns(place) {
			a.removed.note(&Key{Place: place, Table: p.Table(), Bytes: p.Key()}, p.Version())
		}
	}
}

// Arrives tells whether an arrival of some of these places goes on: then who looks for a key that is not there may
// wait for its end.
func (st *Store) Arrives(ranges []Range) bool {
	return slices.ContainsFunc(st.arriving.list(), func(a *Arrival) bool { return a.puller != nil && overlap(a.ranges, ranges) })
}
