package store

import "github.com/ostrodb/ostro/engine/record"

// A store that opens in the middle of an arrival is told so by Options.Arriving. Until Arrive
// is called again, or Arrived, those places are expected: nobody serves them, but what the
// log says of removed keys is known, for imports, and the cleaner keeps it.

// expect begins to expect the places that the options name.
func (st *Store) expect() {
	if len(st.opts.Arriving) == 0 {
		return
	}
	all := []*Arrival{{st: st, ranges: st.opts.Arriving, settled: newSettled()}}
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
	return &Arrival{st: a.st, ranges: left, settled: a.settled}
}

// Arrived says that nothing arrives any more at places that Options.Arriving named, and for
// which Arrive was not called: their source died, say, and its log was imported.
func (st *Store) Arrived(ranges []Range) {
	st.arriving.edit(func(a *Arrival) *Arrival {
		if a.puller != nil || !overlap(a.ranges, ranges) {
			return a
		}
		return a.without(ranges)
	})
}

// settleReplayed notes that replay has found p to be the last of its key, a tombstone.
func (st *Store) settleReplayed(place record.Place, p record.Ptr) {
	for _, a := range st.arriving.list() {
		if a.owns(place) {
			a.settled.note(&Key{Place: place, Table: p.Table(), Bytes: p.Key()}, p.Version())
		}
	}
}
