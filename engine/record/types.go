package record

import "strconv"

// SegmentID numbers the segments of a log: it only grows and is never reused.
type SegmentID uint64

// BatchID numbers the sealed batches of a log over all its heads, without a
// gap and in an order in which each comes after those that it builds on. Zero
// is for segments whose batches have no order: those of a volatile log, and side
// segments.
type BatchID uint64

// LogID names the log of one primary.
type LogID uint64

// TableID names a table, the unit of truncation.
type TableID uint32

// Type says what an entry is. It fills the low half of an entry's first byte,
// so there are at most 16, and none but "never written" is zero.
type Type uint8

// The types of entries. Their numbers are on disk: never change one.
const (
	TypeNone          Type = 0 // Never written: the log ends here.
	TypePut           Type = 1
	TypeTombstone     Type = 2
	TypeSeal          Type = 3 // Ends a batch.
	TypeSegmentHeader Type = 4 // The first entry of every segment, and only that.
	TypeVoid          Type = 5 // Dead filler of any length from 8 bytes on.
	TypeTable         Type = 6 // 6 to 8 are reserved: nobody writes them.
	TypeIndirection   Type = 7
	TypeCommit        Type = 8
	TypeCompletion    Type = 9
)

var typeNames = [...]string{
	"none", "put", "tombstone", "seal", "segment header", "void", "table", "indirection", "commit", "completion",
}

// String returns the word for t in dumps and errors.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// Kind is the type of a value, as Redis users know it. It fills the high half
// of an entry's first byte, so there are at most 16.
type Kind uint8

// The kinds of values. Their numbers are on disk: never change one.
const (
	KindString Kind = 0
	KindList   Kind = 1
	KindSet    Kind = 2
	KindZSet   Kind = 3
	KindHash   Kind = 4
	KindStream Kind = 5
)

var kindNames = [...]string{"string", "list", "set", "zset", "hash", "stream"}

// String returns the name that the Redis command TYPE gives k.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}
