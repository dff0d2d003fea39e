//go:build !race

package server_test

import "time"

const (
	testLease    = 4 * time.Second
	testPatience = 100 * time.Second
	testDeadline = 5 * time.Second
)
