package wire

import (
	"encoding/binary"
	"fmt"
)

// Status is the outcome of an operation. From Invalid on, the result's value is a
// sentence that says what to do.
type Status uint8

const (
	OK       Status = iota
	NotFound        // no such key
	Conflict        // the condition does not hold; version and value are what is there
	Moved           // not executed: the node does not own the key any more, refresh and send again
	Busy            // not executed: records are still arriving, send again

	Invalid  // the operation makes no sense
	Unknown  // no such table, merge function or function
	Refused  // no memory, or no room on disk; not executed
	TooLarge // a key, value or answer is over its limit; not executed
	Failed   // the server could not; whether it was executed is not known
	statusEnd
)

var statusNames = [...]string{"ok", "not found", "conflict", "moved", "busy", "invalid", "unknown", "refused", "too large", "failed"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// ResultFlags say which optional fields a result has.
type ResultFlags uint8

// ResultExpires: the record has a time to expire at.
const ResultExpires ResultFlags = 1

// Result is the outcome of one operation.
type Result struct {
	Tag      uint32
	Status   Status
	Version  uint64 // of the record, after the operation
	ExpireAt int64
	Value    []byte
}

const resultBytes = 20

// BeginResults appends the head of a results frame. Results follow, then EndResults.
func BeginResults(b []byte) (out []byte, start int) {
	b, start = Begin(b, TypeResults)
	return append(b, 0, 0, 0, 0), start
}

// EndResults completes the frame that began at start.
func EndResults(b []byte, start, count int) []byte {
	binary.LittleEndian.PutUint32(b[start+HeaderBytes:], uint32(count))
	return End(b, start)
}

// AppendResult appends one result.
func AppendResult(b []byte, r *Result) []byte {
	var head [resultBytes + 8]byte
	binary.LittleEndian.PutUint32(head[:], r.Tag)
	head[4] = byte(r.Status)
	binary.LittleEndian.PutUint32(head[8:], uint32(len(r.Value)))
	binary.LittleEndian.PutUint64(head[12:], r.Version)
	n := resultBytes
	if r.ExpireAt != 0 {
		head[5] = byte(ResultExpires)
		binary.LittleEndian.PutUint64(head[resultBytes:], uint64(r.ExpireAt))
		n += 8
	}
	b = append(b, head[:n]...)
	return append(b, r.Value...)
}

// Results goes through the results of a frame.
type Results struct {
	rest []byte
	left uint32
}

// DecodeResults stands before the first result of a frame.
func DecodeResults(body []byte) (rs Results, err error) {
	if len(body) < 4 {
		return rs, within(TypeResults, ErrShort)
	}
	rs.left, rs.rest = binary.LittleEndian.Uint32(body), body[4:]
	if uint64(rs.left)*resultBytes > uint64(len(rs.rest)) {
		return rs, within(TypeResults, ErrShort)
	}
	if rs.left == 0 && len(rs.rest) > 0 {
		return rs, within(TypeResults, ErrTrailing)
	}
	return rs, nil
}

// More tells whether there are results left.
func (rs *Results) More() bool { return rs.left > 0 }

// Next reads the next result into r; its value is the frame's.
func (rs *Results) Next(r *Result) error {
	b := rs.rest
	if len(b) < resultBytes {
		return within(TypeResults, ErrShort)
	}
	flags, n := ResultFlags(b[5]), uint64(binary.LittleEndian.Uint32(b[8:]))
	*r = Result{Tag: binary.LittleEndian.Uint32(b), Status: Status(b[4]), Version: binary.LittleEndian.Uint64(b[12:])}
	if r.Status >= statusEnd || flags&^ResultExpires != 0 || b[6]|b[7] != 0 {
		return within(TypeResults, fmt.Errorf("%w: no such result: %s with flags %#x", ErrMalformed, r.Status, uint8(flags)))
	}
	b = b[resultBytes:]
	if flags&ResultExpires != 0 {
		if len(b) < 8 {
			return within(TypeResults, ErrShort)
		}
		r.ExpireAt = int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if n > uint64(len(b)) {
		return within(TypeResults, ErrShort)
	}
	r.Value, rs.rest = b[:n:n], b[n:]
	rs.left--
	if rs.left == 0 && len(rs.rest) > 0 {
		return within(TypeResults, ErrTrailing)
	}
	return nil
}
