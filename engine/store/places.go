package store

import "github.com/ostrodb/ostro/engine/record"

// PlaceOfEntry gives the place that an entry of a log belongs to, whatever it is:
// a record, a tombstone, a piece of a large value, the result of an operation.
// It is the place of the key that it is about, so all that belongs to a range
// is told by it. False: the entry belongs to no range.
func PlaceOfEntry(p record.Ptr) (record.Place, bool) {
	switch p.Type() {
	case record.TypePut, record.TypeTombstone:
		if p.Table() == chunkTable {
			key, t, _, ok := chunkBody(p.Value())
			return record.PlaceOf(t, key), ok
		}
		return record.PlaceOf(p.Table(), p.Key()), true
	case record.TypeCompletion:
		if key := p.Key(); len(key) == completionKeyBytes {
			return objectOf(key), true
		}
	}
	return 0, false
}
