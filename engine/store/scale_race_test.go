//go:build race

package store_test

// scale shrinks a test's work where the race detector makes it slow.
func scale(n int) int { return max(n/6, 1) }
