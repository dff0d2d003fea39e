package record

import "golang.org/x/sys/cpu"

// A CRC is the remainder of the message, taken as a polynomial, times x^16. So
// it is also the remainder of the sum of the message's words, each times its own
// power of x reduced beforehand: products that do not wait for each other, where
// a table's next index waits for its last entry.

const (
	crc16Polynomial = 1<<16 | 0x1021

	// Tables need no start, and short keys need few steps.
	crc16MultiplyFrom = 16
	crc16MultiplyTo   = 8 * len(crc16Powers)
)

var (
	canMultiply = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSSE3

	// crc16Powers[i] is the remainder of x^(64i+16), for the word that has i
	// words behind it.
	crc16Powers = makeCRC16Powers()

	// crc16Reduction is what brings 79 bits down to 16: the remainder of x^64,
	// the quotient of x^64, and the polynomial.
	crc16Reduction = [4]uint64{remainderOfPower(64), quotientOfPower64(), crc16Polynomial}
)

var _ = &crc16Reduction // Only assembly reads it.

func makeCRC16Powers() (p [128]uint64) {
	for i := range p {
		p[i] = remainderOfPower(64*i + 16)
	}
	return p
}

// remainderOfPower returns x^n modulo the polynomial.
func remainderOfPower(n int) uint64 {
	r := uint64(1)
	for range n {
		if r <<= 1; r>>16 != 0 {
			r ^= crc16Polynomial
		}
	}
	return r
}

// quotientOfPower64 returns x^64 divided by the polynomial: its bit i is set if
// the long division subtracts at x^(16+i).
func quotientOfPower64() uint64 {
	q, r := uint64(0), uint64(1)
	for range 64 {
		q <<= 1
		if r <<= 1; r>>16 != 0 {
			r ^= crc16Polynomial
			q |= 1
		}
	}
	return q
}

// crc16Multiply is crc16 of crc16MultiplyFrom to crc16MultiplyTo bytes.
//
//go:noescape
func crc16Multiply(b []byte) uint16

// crc16 returns CRC-16/XMODEM of b.
func crc16(b []byte) uint16 {
	if canMultiply && len(b) >= crc16MultiplyFrom && len(b) <= crc16MultiplyTo {
		return crc16Multiply(b)
	}
	return crc16Tabled(b)
}
