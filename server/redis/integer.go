package redis

import "math"

// parseInt reads a signed 64-bit integer as Redis does: decimal digits with an
// optional minus and nothing else. "+1", "01", "-0", " 1" and "" are refused, so
// that every integer has one spelling and can be stored as its own text.
func parseInt(b []byte) (int64, bool) {
	digits, negative := b, false
	if len(b) > 0 && b[0] == '-' {
		digits, negative = b[1:], true
	}
	magnitude, ok := parseUint(digits)
	switch {
	case !ok:
		return 0, false
	case negative:
		return -int64(magnitude), magnitude != 0 && magnitude <= 1<<63
	default:
		return int64(magnitude), magnitude <= math.MaxInt64
	}
}

// parseUint is parseInt without a sign.
func parseUint(b []byte) (uint64, bool) {
	if len(b) > 1 && b[0] == '0' {
		return 0, false
	}
	return parseDigits(b)
}

// parseDigits reads decimal digits, at least one, with zeros in front if you like.
func parseDigits(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(b) > 0
}

// addInt adds without wrapping; it reports whether the sum fits.
func addInt(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}
