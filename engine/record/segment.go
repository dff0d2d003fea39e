package record

import (
	"encoding/binary"
	"fmt"
)

const (
	// SegmentHeaderBytes is the length of the first entry of every segment.
	SegmentHeaderBytes = 64
	// FormatVersion is what this package writes, and all it reads.
	FormatVersion = 2
)

// SegmentInfo is what a segment says of itself.
type SegmentInfo struct {
	Log           LogID
	ID            SegmentID
	CreatedMillis int64 // Unix milliseconds.
	SegmentBytes  uint32
}

// EncodeSegmentHeader writes the first entry of a segment to dst and returns
// its length. It joins the segment's chain like any other entry.
func EncodeSegmentHeader(dst []byte, log LogID, id SegmentID, createdMillis int64, segmentBytes uint32) int {
	var value [SegmentHeaderBytes - HeaderBytes]byte
	binary.LittleEndian.PutUint64(value[0:], uint64(log))
	binary.LittleEndian.PutUint64(value[8:], uint64(id))
	binary.LittleEndian.PutUint64(value[16:], uint64(createdMillis))
	binary.LittleEndian.PutUint32(value[24:], FormatVersion)
	binary.LittleEndian.PutUint32(value[28:], segmentBytes)
	return Encode(dst, &Header{Type: TypeSegmentHeader, Version: uint64(id)}, nil, value[:], true)
}

// DecodeSegmentHeader reads the first entry of a segment. Its error is an
// ErrFormat if the entry is whole but another version of Ostro wrote it, else a
// CorruptError without a segment's id, for there is none to believe.
func DecodeSegmentHeader(b []byte) (SegmentInfo, error) {
	if reason := checkSegmentHeader(b); reason != "" {
		return SegmentInfo{}, &CorruptError{Reason: reason}
	}
	value := b[HeaderBytes:SegmentHeaderBytes]
	info := SegmentInfo{
		Log:           LogID(binary.LittleEndian.Uint64(value[0:])),
		ID:            SegmentID(binary.LittleEndian.Uint64(value[8:])),
		CreatedMillis: int64(binary.LittleEndian.Uint64(value[16:])),
		SegmentBytes:  binary.LittleEndian.Uint32(value[28:]),
	}
	if format := binary.LittleEndian.Uint32(value[24:]); format != FormatVersion {
		return info, fmt.Errorf("segment %d has format %d, this program reads %d: %w", info.ID, format, FormatVersion, ErrFormat)
	}
	return info, nil
}

// checkSegmentHeader says why b does not start with a whole segment header, or
// nothing if it does.
func checkSegmentHeader(b []byte) string {
	if len(b) < SegmentHeaderBytes {
		return "shorter than a segment header"
	}
	if front := binary.LittleEndian.Uint64(b); front != uint64(TypeSegmentHeader)|SegmentHeaderBytes<<32 {
		return "no segment header"
	}
	if !PtrOf(b).CRCValid() {
		return "segment header does not match its CRC"
	}
	return ""
}
