//go:build race

package index

// size shrinks a test's work where the race detector makes it slow. It does not
// see memory outside the Go heap; what it slows down it still exercises.
func size(n int) uint64 { return uint64(n / 8) }
