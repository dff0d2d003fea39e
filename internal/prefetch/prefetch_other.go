//go:build !amd64 && !arm64

package prefetch

import (
	"sync/atomic"
	"unsafe"
)

// T0 loads from the cache line at p, which must be mapped: an early load that
// nothing depends on overlaps almost as well as a prefetch.
func T0(p unsafe.Pointer) {
	atomic.LoadUint32((*uint32)(unsafe.Pointer(uintptr(p) &^ 3)))
}

// Lines is T0 of n cache lines from p on, one at least.
func Lines(p unsafe.Pointer, n int) {
	for i := range n {
		T0(unsafe.Add(p, i*line))
	}
}
