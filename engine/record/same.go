package record

import "unsafe"

// sameByCall is the length from which the library's comparison is faster.
const sameByCall = 64

// same compares n bytes. Most keys are short: it takes them in words, of which
// the last may overlap the one before, and calls nothing.
func same(a, b unsafe.Pointer, n int) bool {
	switch {
	case n >= sameByCall:
		return sameLong(a, b, n)
	case n >= 8:
		for at := 0; at < n-8; at += 8 {
			if word(a, at) != word(b, at) {
				return false
			}
		}
		return word(a, n-8) == word(b, n-8)
	}
	for at := range n {
		if *(*byte)(unsafe.Add(a, at)) != *(*byte)(unsafe.Add(b, at)) {
			return false
		}
	}
	return true
}

func word(p unsafe.Pointer, at int) uint64 { return *(*uint64)(unsafe.Add(p, at)) }

//go:noinline
func sameLong(a, b unsafe.Pointer, n int) bool {
	return unsafe.String((*byte)(a), n) == unsafe.String((*byte)(b), n)
}
