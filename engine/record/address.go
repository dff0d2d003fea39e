package record

import "strconv"

const (
	offsetBits = 23
	slotBits   = 25

	// MaxSegmentBytes is the largest segment: what an Address can reach within one.
	MaxSegmentBytes = 1 << offsetBits
	// MaxSlots bounds the segments that a node can name at a time. Slot 0 is
	// never used, so that no entry has the address 0.
	MaxSlots = 1 << slotBits
)

// Address is where an entry lies among this node's segments: 25 bits of slot,
// 23 bits of byte offset. It fits 48 bits, and as entries are 8-aligned its
// low 3 bits are zero. The zero Address means "none".
type Address uint64

// MakeAddress returns the address of the entry at off in the segment of slot.
func MakeAddress(slot, off uint32) Address {
	return Address(slot)<<offsetBits | Address(off)
}

// Slot returns the slot of the segment that holds the entry.
func (a Address) Slot() uint32 { return uint32(a >> offsetBits) }

// Offset returns the entry's first byte within its segment.
func (a Address) Offset() uint32 { return uint32(a) & (MaxSegmentBytes - 1) }

// String returns slot and offset, as dumps show them.
func (a Address) String() string {
	return strconv.FormatUint(uint64(a.Slot()), 10) + ":" + strconv.FormatUint(uint64(a.Offset()), 10)
}
