// Package background keeps bulk work out of the way of those who serve. A
// goroutine that copies or scans much runs on a thread of its own, which the
// kernel lets wait while others have work to do.
package background

import "runtime"

// Quiet moves the calling goroutine to a thread of its own with low priority,
// for as long as the goroutine lives. On a busy machine it may be off its core for
// long at any moment, so it takes no lock that serving goroutines take: those
// would wait with it. What needs such a lock it does Aloud.
func Quiet() {
	runtime.LockOSThread()
	lower(niceness)
}

// Quietly runs f on a thread of a priority below that of quiet goroutines, and waits for its end. It is
// for what may come later than their work.
func Quietly(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		lower(patience)
		f()
	}()
	<-done
}

// Aloud runs f for a quiet goroutine on a thread of usual priority, and waits
// for its end.
func Aloud(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}
