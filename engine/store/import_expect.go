package store

import (
	"context"

	"github.com/ostrodb/ostro/engine/record"
)

// fewEntries need no preparation: the index grows by itself.
const fewEntries = 50_000

// Expect says about how many records an import will bring to the places that it has aside. The index makes room for them
// at once, which is less work than to make some again and again while many insert. If it
// cannot, for want of memory, that is no error yet.
func (im *Importer) Expect(records int) {
	im.st.expectRecords(context.Background(), im.aside, int64(records), func() {}) // Clients wait for it.
}

// expectRecords makes room in the index for about so many records, until ctx ends. It may rest between two parts.
func (st *Store) expectRecords(ctx context.Context, ranges []Range, records int64, rest func()) {
	if records < fewEntries {
		return
	}
	ss, err := st.NewSession()
	if err != nil {
		return
	}
	defer ss.Close()
	all := 0.0
	for _, r := range ranges {
		all += float64(r.Last-r.First) + 1
	}
	for _, r := range ranges {
		share := int(float64(records) * ((float64(r.Last-r.First) + 1) / all))
		for at, more := r.First, true; more && ctx.Err() == nil; more = at != 0 && at <= r.Last {
			if at, err = ss.makeRoom(r, share, at); err != nil {
				return
			}
			rest()
		}
	}
}

// makeRoom makes room in one part of the index, inside a guard.
func (ss *Session) makeRoom(r Range, entries int, at record.Place) (record.Place, error) {
	ss.Begin()
	defer ss.End()
	next, ok := ss.ix.Prepare(r.First, r.Last, entries, at)
	if !ok {
		return at, ErrIndexFull
	}
	return next, nil
}
