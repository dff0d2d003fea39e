package record

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

const (
	// PlaceSlots is the number of Redis Cluster slots.
	PlaceSlots = 1 << placeSlotBits

	placeSlotBits = 14
	placeHashBits = 64 - placeSlotBits
)

// Place is a key's position in the 64-bit placement space: 14 bits of Redis
// Cluster slot, then 50 bits of hash. Hence a slot is a contiguous range, and
// any finer range is a part of one.
type Place uint64

// PlaceOf returns where key of table lives. The slot depends on the key alone,
// as Redis clients compute it; the hash depends on the table too, so equal keys
// of two tables do not fill one bucket.
func PlaceOf(table TableID, key []byte) Place {
	if n := len(key); n >= 8 && n <= 16 {
		first, last := binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[n-8:])
		switch {
		case hasBrace(first) || hasBrace(last):
		case n == 8:
			return placeOf8(table, first)
		default:
			return placeOf16(table, first, last, n)
		}
	}
	return placeOf(table, key)
}

func placeOf(table TableID, key []byte) Place {
	hash := xxh3.HashSeed(key, uint64(table)) >> placeSlotBits
	return Place(SlotOf(key))<<placeHashBits | Place(hash)
}

// Slot returns the Redis Cluster slot of every key at p.
func (p Place) Slot() uint16 { return uint16(p >> placeHashBits) }

// SlotOf returns the Redis Cluster slot of key: CRC16 of its hash tag, or of
// the whole key when it has none.
func SlotOf(key []byte) uint16 {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		key = hashTag(key, open)
	}
	return crc16(key) % PlaceSlots
}

// hashTag returns what stands between the first brace, at open, and the first
// one that closes after it. If that is nothing, the key has no tag.
func hashTag(key []byte, open int) []byte {
	rest := key[open+1:]
	if n := bytes.IndexByte(rest, '}'); n > 0 {
		return rest[:n]
	}
	return key
}
