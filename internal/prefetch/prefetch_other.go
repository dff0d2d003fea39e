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
