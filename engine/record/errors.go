package record

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt is what every CorruptError is: bytes that must be whole are not.
	ErrCorrupt = errors.New("corrupt")
	// ErrFormat tells that a segment is whole but of a format that this
	// program does not read.
	ErrFormat = errors.New("unknown segment format")
)

// CorruptError tells where a segment is damaged in a way that no torn write
// explains.
type CorruptError struct {
	Segment SegmentID
	Offset  int // Of the first entry that is not whole.
	Reason  string
}

// Error returns the facts in one sentence.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("segment %d is corrupt at byte %d: %s", e.Segment, e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }
