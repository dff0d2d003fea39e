package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Magic opens every native stream. On a port that peers share it tells a
// session from everything else.
const Magic = "ostro/s1"

// Version is that of the protocol behind the magic.
const Version = 2

const (
	// HeaderBytes is what stands before a frame's body.
	HeaderBytes = 5
	// MaxFrameBytes bounds a frame: the largest value of the store and what goes with it.
	MaxFrameBytes = 513 << 20
	// MaxHelloBytes bounds the first frame, which anybody may send.
	MaxHelloBytes = 4 << 10
)

// Type says what a frame is.
type Type uint8

const (
	TypeHello Type = iota + 1
	TypeWelcome
	TypeBatch
	TypeResults
	TypeStale
	TypeRefresh
	TypeMap
	TypeGoodbye
)

var typeNames = [...]string{"nothing", "hello", "welcome", "batch", "results", "stale", "refresh", "map", "goodbye"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

var (
	// ErrMalformed is what all errors of this package are.
	ErrMalformed = errors.New("malformed")
	// ErrShort says that a frame ends before what it announces.
	ErrShort = fmt.Errorf("%w: the frame ends too early", ErrMalformed)
	// ErrTrailing says that a frame has bytes behind its end.
	ErrTrailing = fmt.Errorf("%w: the frame has bytes behind its end", ErrMalformed)
	// ErrFrameTooLarge says that a frame is over the limit.
	ErrFrameTooLarge = fmt.Errorf("%w: the frame is too large", ErrMalformed)
)

// Next returns the first frame of b and its bytes on the wire. With n of 0 it has not
// arrived whole, and need says how many bytes of b it will take.
func Next(b []byte, limit int) (t Type, body []byte, n, need int, err error) {
	if len(b) < HeaderBytes {
		return 0, nil, 0, HeaderBytes, nil
	}
	length := binary.LittleEndian.Uint32(b)
	if length == 0 {
		return 0, nil, 0, 0, ErrShort
	}
	if uint64(length) > uint64(limit) {
		return 0, nil, 0, 0, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrFrameTooLarge, length, limit)
	}
	end := 4 + int(length)
	if len(b) < end {
		return 0, nil, 0, end, nil
	}
	return Type(b[4]), b[HeaderBytes:end:end], end, end, nil
}

// Begin appends the header of a frame whose length is not known yet; End fills it in.
func Begin(b []byte, t Type) (out []byte, start int) {
	return append(b, 0, 0, 0, 0, byte(t)), len(b)
}

// End completes the frame that Begin began at start.
func End(b []byte, start int) []byte {
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// reader takes fields off the front of a body. After the first field that is
// not there, all others are zero and err tells.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.err = ErrShort
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) short() []byte { return r.take(int(r.u16())) }

// done tells whether all fields were there and nothing is behind them.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = ErrTrailing
	}
	return r.err
}

// appendShort appends a text with its length. What is longer than a u16 can tell is cut.
func appendShort[T string | []byte](b []byte, s T) []byte {
	if len(s) > 1<<16-1 {
		s = s[:1<<16-1]
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}
