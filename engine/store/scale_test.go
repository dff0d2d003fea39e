//go:build !race

package store_test

func scale(n int) int { return n }
