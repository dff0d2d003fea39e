package redis

import (
	"encoding/binary"
	"math/bits"
)

// Bit 0 of a bitmap is the highest bit of its first byte. Ranges are of bits,
// both ends included, inside the bitmap.

// countBits counts the ones among bits first to last.
func countBits(p []byte, first, last int64) int64 {
	from, to := first>>3, last>>3
	n := countOnes(p[from : to+1])
	n -= int64(bits.OnesCount8(p[from] & headMask(first)))
	n -= int64(bits.OnesCount8(p[to] & tailMask(last)))
	return n
}

func countOnes(p []byte) (n int64) {
	for ; len(p) >= 8; p = p[8:] {
		n += int64(bits.OnesCount64(binary.NativeEndian.Uint64(p)))
	}
	for _, c := range p {
		n += int64(bits.OnesCount8(c))
	}
	return n
}

// findBit returns where the first bit equal to want lies among bits first to
// last, or -1.
func findBit(p []byte, want bool, first, last int64) int64 {
	from, to := first>>3, last>>3
	for at := from; at <= to; at++ {
		if n := skipUniform(p[at:to+1], want); n > 0 && at > from {
			at += n - 1
			continue
		}
		c := p[at]
		if !want {
			c = ^c
		}
		if at == from {
			c &^= headMask(first)
		}
		if at == to {
			c &^= tailMask(last)
		}
		if c != 0 {
			return at<<3 + int64(bits.LeadingZeros8(c))
		}
	}
	return -1
}

// skipUniform tells how many leading bytes, by words of eight, have no wanted bit.
func skipUniform(p []byte, want bool) (n int64) {
	var idle uint64
	if !want {
		idle = ^idle
	}
	for ; len(p) >= 8 && binary.NativeEndian.Uint64(p) == idle; p = p[8:] {
		n += 8
	}
	return n
}

// headMask selects the bits of a byte before bit n, tailMask those after it.
func headMask(n int64) byte { return ^byte(0xff >> (n & 7)) }
func tailMask(n int64) byte { return byte(0x7f) >> (n & 7) }

// combineBits writes the bitwise combination of the sources into dst; sources
// shorter than dst count as zero-padded.
func combineBits(dst []byte, op bitOperation, sources [][]byte) {
	n := copy(dst, sources[0])
	clear(dst[n:])
	switch op {
	case bitNot:
		for i := range dst {
			dst[i] = ^dst[i]
		}
	case bitAnd:
		for _, s := range sources[1:] {
			andBits(dst, s)
		}
	case bitOr:
		for _, s := range sources[1:] {
			for i, c := range s {
				dst[i] |= c
			}
		}
	case bitXor:
		for _, s := range sources[1:] {
			for i, c := range s {
				dst[i] ^= c
			}
		}
	}
}

func andBits(dst, s []byte) {
	for i, c := range s {
		dst[i] &= c
	}
	clear(dst[len(s):])
}

type bitOperation uint8

const (
	bitAnd bitOperation = iota
	bitOr
	bitXor
	bitNot
)
