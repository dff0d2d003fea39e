package store

import "github.com/ostrodb/ostro/engine/record"

// ScanRange is Scan over the keys whose places lie in [from, to].
func (ss *Session) ScanRange(db int, from, to record.Place, cursor uint64, count int, f func(key []byte, v *View)) (uint64, Status) {
	return 0, ss.fail(errNotBuilt)
}

// CountRange counts the keys whose places lie in [from, to].
func (ss *Session) CountRange(db int, from, to record.Place) (int, Status) {
	return 0, ss.fail(errNotBuilt)
}

// SlotRange gives the first and the last place of a Redis Cluster slot.
func SlotRange(slot uint16) (from, to record.Place) { return 0, 0 }
