// Package e2e tests the ostro binary from outside, as a person at a terminal
// or a service manager meets it: processes, ports, signals, files, exit codes.
// It imports nothing of Ostro but the harness.
//
// It needs redis-cli (Debian: redis-tools).
package e2e
