package store

import "github.com/ostrodb/ostro/engine/record"

// counting tells which entries of a segment count when the log is opened: those of places that
// this node owns, above the floors of their places.
func (st *Store) counting(id record.SegmentID, segment []byte) func(off uint32, p record.Ptr) bool {
	above := record.NewAbove(st.opts.Floors, id, segment)
	owned := st.opts.Owned
	if above == nil && owned == nil {
		return func(uint32, record.Ptr) bool { return true }
	}
	return func(off uint32, p record.Ptr) bool {
		place, ok := PlaceOfEntry(p)
		if !ok {
			return true // It is no record.
		}
		return (owned == nil || record.InSpans(owned, place)) && above.Counts(off, place)
	}
}
