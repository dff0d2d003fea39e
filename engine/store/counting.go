package store

import "github.com/ostrodb/ostro/engine/record"

// counting tells which entries of a segment count when the log is opened: those of places that
// this node owns, above the floors of their places.
func (st *Store) counting(id record.SegmentID, segment []byte) func(off uint32, p record.Ptr) bool {
	above := record.NewAbove(st.opts.Floors, id, segment)
	if above == nil && st.opts.Owned == nil {
		return func(uint32, record.Ptr) bool { return true }
	}
	return func(off uint32, p record.Ptr) bool {
		place, ok := PlaceOfEntry(p)
		return !ok || st.owns(place) && above.Counts(off, place)
	}
}

func (st *Store) owns(p record.Place) bool {
	return st.opts.Owned == nil || record.InSpans(st.opts.Owned, p)
}

// agrees tells whether a snapshot of the index has nothing that is below a floor: it was begun
// when the floor was there, for then nothing of its places was in the index.
func (st *Store) agrees(snap *snapshot) bool {
	for i := range st.opts.Floors {
		if snap.Next <= st.opts.Floors[i].Segment {
			return false
		}
	}
	return true
}

// What an index, and its snapshot, do not know of a place.
const placeUnknown = record.Place(1<<32-1) &^ 1023

// ownsAt tells whether the record at a is of a place that this node owns. A snapshot does not
// know all of its place, and of what belongs to another record only the slot; at a
// border of what is owned the record itself must tell.
func (st *Store) ownsAt(place record.Place, table uint32, a record.Address, id record.SegmentID) bool {
	if st.opts.Owned == nil {
		return true
	}
	unknown := placeUnknown
	if table >= completionNumber {
		unknown = slotRest
	}
	window := record.Span{First: place &^ unknown, Last: place | unknown}
	touched := false
	for _, s := range st.opts.Owned {
		if s.First <= window.First && window.Last <= s.Last {
			return true
		}
		touched = touched || s.First <= window.Last && window.First <= s.Last
	}
	return touched && st.ownsRecord(a, id)
}

// ownsRecord is ownsAt of a record that is looked at. One that cannot be read is kept:
// the error shows when it is asked for.
func (st *Store) ownsRecord(a record.Address, id record.SegmentID) bool {
	p, ok := st.log.Entry(a)
	if !ok {
		b, err := st.log.Fetch(a, id)
		if err != nil {
			return true
		}
		p = record.PtrOf(b)
	}
	place, ok := PlaceOfEntry(p)
	return !ok || st.owns(place)
}
