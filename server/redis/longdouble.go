package redis

import (
	"bytes"
	"math/big"
)

// INCRBYFLOAT computes in the x87 extended format: 64 bits of mantissa, 15 of
// exponent. The same sums, digit for digit, come from a big.Float of 64 bits
// whose exponent is kept within the same borders.
const (
	longDoubleBits  = 64
	longDoubleChars = 5 * 1024 // Redis reads no longer number

	longDoubleMaxExp = 16384       // a finite value is below 2^16384
	longDoubleMinExp = -16381 - 64 // the smallest denormal is 2^-16445
	guardBits        = 256         // for reading decimals, before the one rounding
)

// parseLongDouble reads what C's strtold reads, all of it, in the way Redis
// accepts it: no blanks, no NaN, neither overflow nor underflow to zero.
// Infinities are numbers here; the sum refuses them.
func parseLongDouble(b []byte) (*big.Float, bool) {
	if len(b) == 0 || len(b) >= longDoubleChars {
		return nil, false
	}
	digits, negative := b, false
	if b[0] == '-' || b[0] == '+' {
		digits, negative = b[1:], b[0] == '-'
	}
	if equalFold(digits, "inf") || equalFold(digits, "infinity") {
		return new(big.Float).SetInf(negative), true
	}
	if !isFloatLiteral(digits) {
		return nil, false
	}
	wide, _, err := big.ParseFloat(floatLiteral(digits), 0, longDoubleBits+guardBits, big.ToNearestEven)
	if err != nil {
		return nil, false
	}
	f := new(big.Float).SetPrec(longDoubleBits).Set(wide)
	if negative {
		f.Neg(f)
	}
	return f, inLongDoubleRange(f)
}

// isFloatLiteral checks the grammar of an unsigned decimal or hexadecimal
// float, for big.ParseFloat accepts more (underscores, octal, binary).
func isFloatLiteral(b []byte) bool {
	isDigit, exponent := isDecimal, byte('e')
	if isHexFloat(b) {
		b, isDigit, exponent = b[2:], isHex, 'p'
	}
	n := countWhile(b, isDigit)
	b = b[n:]
	if len(b) > 0 && b[0] == '.' {
		fraction := countWhile(b[1:], isDigit)
		n += fraction
		b = b[1+fraction:]
	}
	if n == 0 || len(b) == 0 {
		return n > 0
	}
	if lower(b[0]) != exponent {
		return false
	}
	b = b[1:]
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	return len(b) > 0 && len(b) <= 9 && countWhile(b, isDecimal) == len(b)
}

// floatLiteral turns C's spelling into Go's: a hexadecimal float must have an
// exponent, and a leading zero of a decimal must not mean octal.
func floatLiteral(b []byte) string {
	if isHexFloat(b) {
		if !bytes.ContainsAny(b, "pP") {
			return string(b) + "p0"
		}
		return string(b)
	}
	for len(b) > 1 && b[0] == '0' && isDecimal(b[1]) {
		b = b[1:]
	}
	return string(b)
}

func isHexFloat(b []byte) bool {
	return len(b) > 2 && b[0] == '0' && lower(b[1]) == 'x'
}

func inLongDoubleRange(f *big.Float) bool {
	exp := f.MantExp(nil)
	return !f.IsInf() && (f.Sign() == 0 || exp <= longDoubleMaxExp && exp > longDoubleMinExp)
}

// addLongDouble adds as the x87 does; it reports whether the sum is a finite number.
func addLongDouble(a, b *big.Float) (*big.Float, bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum := new(big.Float).SetPrec(longDoubleBits).Add(a, b)
	return sum, sum.MantExp(nil) <= longDoubleMaxExp
}

// appendLongDouble appends f the way Redis shows it to people: 17 decimals at
// most, no trailing zeros, no exponent, no negative zero.
func appendLongDouble(dst []byte, f *big.Float) []byte {
	start := len(dst)
	dst = f.Append(dst, 'f', 17)
	dst = bytes.TrimRight(dst, "0")
	dst = bytes.TrimSuffix(dst, []byte("."))
	if string(dst[start:]) == "-0" {
		return append(dst[:start], '0')
	}
	return dst
}

func countWhile(b []byte, is func(byte) bool) int {
	for i, c := range b {
		if !is(c) {
			return i
		}
	}
	return len(b)
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDecimal(c) || 'a' <= lower(c) && lower(c) <= 'f' }

// equalFold compares an argument with a lower-case word, ignoring ASCII case.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if lower(c) != word[i] {
			return false
		}
	}
	return true
}
