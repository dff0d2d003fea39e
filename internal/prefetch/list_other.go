//go:build !amd64 && !arm64

package prefetch

// Fetch does nothing: a load from what may be gone could fault.
func (*List) Fetch() {}

// Stack does nothing.
func Stack(int) {}
