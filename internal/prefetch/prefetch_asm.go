//go:build amd64 || arm64

package prefetch

import "unsafe"

// T0 fetches the cache line at p into all levels. It never faults, whatever p
// is, and it does not wait.
//
//go:noescape
func T0(p unsafe.Pointer)

// Lines is T0 of n cache lines from p on, one at least.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)
