//go:build race

package server_test

import "time"

// Under the race detector a starved machine lets nodes wait for a core for seconds: they are to keep their leases, and
// functions that end by themselves are to do so in time.
const (
	testLease    = 8 * time.Second
	testPatience = 5 * time.Minute
	testDeadline = 10 * time.Second
)
