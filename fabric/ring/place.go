package ring

import "unsafe"

// Place copies n bytes in increasing address order, as a processor that keeps
// stores in order shows it to others: single bytes to the first word border of
// the destination, then whole words, then the rest. Go's own copy promises no
// order. Source and destination may not overlap unless the destination lies
// below.
func Place(dst, src unsafe.Pointer, n uint64) {
	for n > 0 && uintptr(dst)&7 != 0 {
		*(*byte)(dst) = *(*byte)(src)
		dst, src, n = unsafe.Add(dst, 1), unsafe.Add(src, 1), n-1
	}
	for n >= 64 {
		d, s := (*[8]uint64)(dst), (*[8]uint64)(src)
		d[0] = s[0]
		d[1] = s[1]
		d[2] = s[2]
		d[3] = s[3]
		d[4] = s[4]
		d[5] = s[5]
		d[6] = s[6]
		d[7] = s[7]
		dst, src, n = unsafe.Add(dst, 64), unsafe.Add(src, 64), n-64
	}
	for n >= 8 {
		*(*uint64)(dst) = *(*uint64)(src)
		dst, src, n = unsafe.Add(dst, 8), unsafe.Add(src, 8), n-8
	}
	for n > 0 {
		*(*byte)(dst) = *(*byte)(src)
		dst, src, n = unsafe.Add(dst, 1), unsafe.Add(src, 1), n-1
	}
}
