package ring

import (
	"runtime"
	"unsafe"
)

// InOrder tells whether this processor shows stores to others in program order.
const InOrder = runtime.GOARCH == "amd64"

// Place copies n bytes in increasing address order, as a processor that keeps
// stores in order shows it to others: single bytes to the first word border of
// the destination, then whole words, then the rest. Go's own copy promises no
// order. Source and destination may not overlap unless the destination lies
// below.
func Place(dst, src unsafe.Pointer, n uint64) {
	i := uint64(0)
	for ; i < n && (uintptr(dst)+uintptr(i))&7 != 0; i++ {
		placeByte(dst, src, i)
	}
	for ; i+64 <= n; i += 64 {
		placeLine((*[8]uint64)(unsafe.Add(dst, i)), (*[8]uint64)(unsafe.Add(src, i)))
	}
	for ; i+8 <= n; i += 8 {
		*(*uint64)(unsafe.Add(dst, i)) = *(*uint64)(unsafe.Add(src, i))
	}
	for ; i < n; i++ {
		placeByte(dst, src, i)
	}
}

func placeByte(dst, src unsafe.Pointer, i uint64) {
	*(*byte)(unsafe.Add(dst, i)) = *(*byte)(unsafe.Add(src, i))
}

// placeLine stores eight words one after the other.
func placeLine(d, s *[8]uint64) {
	d[0] = s[0]
	d[1] = s[1]
	d[2] = s[2]
	d[3] = s[3]
	d[4] = s[4]
	d[5] = s[5]
	d[6] = s[6]
	d[7] = s[7]
}
