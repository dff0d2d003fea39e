package store

import "github.com/ostrodb/ostro/engine/record"

// SlotRange gives the first and the last place of a Redis Cluster slot.
func SlotRange(slot uint16) (from, to record.Place) {
	from = record.Place(slot) << placeHashBits
	return from, from | slotRest
}

// CountRange counts the keys whose places lie in [from, to]. With Cold nothing is to be used.
func (ss *Session) CountRange(db int, from, to record.Place) (keys int, st Status) {
	_, st = ss.ScanRange(db, from, to, 0, int(^uint(0)>>2), func([]byte, *View) { keys++ })
	return keys, st
}
