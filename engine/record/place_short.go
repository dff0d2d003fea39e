package record

import "math/bits"

// Constants of XXH3 for inputs of up to 16 bytes.
const (
	xxhSecret8  = 0x1cad21f72c81017c ^ 0xdb979083e96dd4de
	xxhSecret24 = 0x1f67b3b7a4a44072 ^ 0x78e5c0cc4ee679cb
	xxhSecret40 = 0x2172ffcc7dd05a82 ^ 0x8e2443f7744608b8
	xxhShort    = 0x9fb21c651e98df25
	xxhMiddle   = 0x165667919e3779f9
)

// placeOf8 is PlaceOf for keys of 8 bytes, the same function without calls:
// counters, ids and hashes are that short, and hashing them would cost as much
// as finding them.
func placeOf8(table TableID, key uint64) Place {
	return Place(crc16Word(0, bits.ReverseBytes64(key))%PlaceSlots)<<placeHashBits | Place(xxh8(key, table)>>placeSlotBits)
}

// placeOf16 is PlaceOf for keys of 9 to 16 bytes: the first eight and the last
// eight of n.
func placeOf16(table TableID, first, last uint64, n int) Place {
	head := bits.ReverseBytes64(first) >> (128 - 8*n) // What stands before the last eight.
	crc := crc16Word(crc16Word(0, head), bits.ReverseBytes64(last))
	return Place(crc%PlaceSlots)<<placeHashBits | Place(xxh16(first, last, uint64(table), uint64(n))>>placeSlotBits)
}

// hasBrace tells whether one of the word's bytes opens a hash tag.
func hasBrace(word uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	x := word ^ '{'*ones
	return (x-ones)&^x&tops != 0
}

// Secret8 is what the hash of a table's keys of 8 bytes begins with.
func Secret8(table TableID) uint64 {
	return xxhSecret8 - (uint64(table) ^ uint64(bits.ReverseBytes32(uint32(table)))<<32)
}

// xxh8 is XXH3 of 8 bytes.
func xxh8(word uint64, table TableID) uint64 {
	h := bits.RotateLeft64(word, 32) ^ Secret8(table)
	h ^= bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)
	h *= xxhShort
	h ^= h>>35 + 8
	h *= xxhShort
	return h ^ h>>28
}

// xxh16 is XXH3 of 9 to 16 bytes: the first eight and the last eight of them.
func xxh16(first, last, seed, n uint64) uint64 {
	low := first ^ (xxhSecret24 + seed)
	high := last ^ (xxhSecret40 - seed)
	over, product := bits.Mul64(low, high)
	h := n + bits.ReverseBytes64(low) + high + (over ^ product)
	h ^= h >> 37
	h *= xxhMiddle
	return h ^ h>>32
}
