package wasm

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// reader takes values from bytes. The first error stays, and all that is read after it is zero.
type reader struct {
	b    []byte
	at   int
	base int // of b[0] in the module
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &FormatError{Offset: r.base + r.at, What: fmt.Sprintf(format, args...)}
		r.at = len(r.b)
	}
}

func (r *reader) left() int { return len(r.b) - r.at }

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail("ends early")
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.fail("ends early: %d bytes wanted, %d are left", n, r.left())
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at : r.at]
}

// u32 reads at most five bytes of seven bits each.
func (r *reader) u32() uint32 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint32(r.b[r.at-1])
	}
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		if shift == 28 && c > 0x0f {
			r.fail("a number of more than 32 bits")
			return 0
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.fail("a number of more than 32 bits")
	return 0
}

// signed reads a number of so many bits: 32, 33 or 64.
func (r *reader) signed(bits uint) int64 {
	var v int64
	for shift := uint(0); ; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		left := bits - shift
		if left <= 7 { // The last byte: the bits above are copies of the sign.
			high := int8(c<<1) >> left
			if c >= 0x80 || (high != 0 && high != -1) {
				r.fail("a number of more than %d bits", bits)
				return 0
			}
		}
		if c < 0x80 {
			if shift += 7; shift < 64 {
				v = v << (64 - shift) >> (64 - shift)
			}
			return v
		}
	}
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads the length of a vector whose elements take at least one byte each.
func (r *reader) count() int {
	n := r.u32()
	if uint64(n) > uint64(r.left()) {
		r.fail("a vector of %d elements in %d bytes", n, r.left())
		return 0
	}
	return int(n)
}

func (r *reader) name() string {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name that is no UTF-8")
		return ""
	}
	return string(b)
}

func (r *reader) valType() byte {
	switch t := r.byte(); t {
	case I32, I64, F32, F64, V128, FuncRef, Extern:
		return t
	default:
		r.fail("unknown type 0x%02x", t)
		return I32
	}
}

func (r *reader) refType() byte {
	t := r.byte()
	if t != FuncRef && t != Extern {
		r.fail("0x%02x is no type of references", t)
	}
	return t
}
