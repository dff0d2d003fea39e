// Package background keeps bulk work out of the way of those who serve. A
// goroutine that copies or scans much runs on a thread of its own, which the
// kernel lets wait while others have work to do.
package background

import "runtime"

// Quiet moves the calling goroutine to a thread of its own with low priority,
// for as long as the goroutine lives. It holds no lock that a serving goroutine
// takes for long, or that one waits with it.
func Quiet() {
	runtime.LockOSThread()
	lower()
}
