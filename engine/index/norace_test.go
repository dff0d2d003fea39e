//go:build !race

package index

func size(n int) uint64 { return uint64(n) }
