package redis

import "math"

// bitInt is an integer inside a bitmap: its width, signedness and first bit.
// The highest bit comes first, whatever the alignment.
type bitInt struct {
	offset uint64
	width  uint
	signed bool
}

// end is the bit after the integer's last.
func (b bitInt) end() uint64 { return b.offset + uint64(b.width) }

// get reads the integer; bits beyond the bitmap are zero.
func (b bitInt) get(p []byte) int64 {
	var u uint64
	for i := b.offset; i < b.end(); i++ {
		u <<= 1
		if at := i >> 3; at < uint64(len(p)) {
			u |= uint64(p[at]>>(7-i&7)) & 1
		}
	}
	if b.signed {
		unused := 64 - b.width
		return int64(u<<unused) >> unused
	}
	return int64(u)
}

// set writes the integer's low bits; the bitmap must reach its end.
func (b bitInt) set(p []byte, value int64) {
	u := uint64(value)
	for i := b.end(); i > b.offset; u >>= 1 {
		i--
		mask := byte(0x80) >> (i & 7)
		if u&1 != 0 {
			p[i>>3] |= mask
		} else {
			p[i>>3] &^= mask
		}
	}
}

type overflowMode uint8

const (
	overflowWrap overflowMode = iota
	overflowSaturate
	overflowFail
)

// fit adds increment to value, both as the client gave them, and bends the sum
// into the integer's range by the given mode. It reports false when the mode
// refuses. The borders are tested in Redis' order, with its wrapping arithmetic,
// so that far out of range values bend to the same side.
func (b bitInt) fit(value, increment int64, mode overflowMode) (int64, bool) {
	over, under := b.overflows(value, increment)
	low, high := b.limits()
	switch {
	case !over && !under:
		return value + increment, true
	case mode == overflowFail:
		return 0, false
	case mode == overflowWrap:
		return b.wrap(value + increment), true
	case over:
		return high, true
	default:
		return low, true
	}
}

func (b bitInt) limits() (low, high int64) {
	switch {
	case !b.signed:
		return 0, 1<<b.width - 1
	case b.width == 64:
		return math.MinInt64, math.MaxInt64
	default:
		return -1 << (b.width - 1), 1<<(b.width-1) - 1
	}
}

func (b bitInt) overflows(value, increment int64) (over, under bool) {
	low, high := b.limits()
	room := high - value
	if !b.signed {
		over = uint64(value) > uint64(high) || increment > 0 && increment > room
		return over, !over && increment < 0 && increment < -value
	}
	narrow := b.width != 64
	over = value > high || (narrow || value >= 0 && increment > 0) && increment > room
	under = value < low || (narrow || value < 0 && increment < 0) && increment < low-value
	return over, under && !over
}

// wrap keeps the integer's low bits and extends its sign.
func (b bitInt) wrap(sum int64) int64 {
	unused := 64 - b.width
	if b.signed {
		return sum << unused >> unused
	}
	return int64(uint64(sum) << unused >> unused)
}
