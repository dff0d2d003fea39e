// Package harness runs the ostro binary for tests that look at it from outside:
// a process to start, kill, stop and restart on the same data directory, and
// connections that speak RESP to it.
//
// Invariants:
//   - No process outlives its test, and none outlives the test binary.
//   - Data lies on a real disk: a server in a tmpfs would never wait for one.
//   - Whatever does not happen within Patience counts as hung, and the report
//     then holds the server's goroutines.
package harness

import "time"

// Patience is how long anything may take before it counts as hung, on a machine that others use, too.
const Patience = 3 * time.Minute
