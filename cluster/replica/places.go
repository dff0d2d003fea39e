package replica

import "github.com/ostrodb/ostro/engine/record"

// placed is an entry of a segment that has a place.
type placed struct {
	off   uint32
	place record.Place
}

// usualEntry is about how many bytes an entry has; only memory depends on it.
const usualEntry = 128

// placesIn finds the places of all entries that have one.
func placesIn(segment []byte, of func(record.Ptr) (record.Place, bool)) []placed {
	all := make([]placed, 0, len(segment)/usualEntry)
	for off, e := range record.Entries(segment) {
		if p, ok := of(e); ok {
			all = append(all, placed{off, p})
		}
	}
	return all
}
