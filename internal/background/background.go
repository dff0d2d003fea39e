// Package background keeps bulk work out of the way of those who serve. A
// goroutine that copies or scans much runs on a thread of its own, which the
// kernel lets wait while others have work to do.
package background

import (
	"runtime"
	"time"
)

// Quiet moves the calling goroutine to a thread of its own with low priority,
// for as long as the goroutine lives. On a busy machine it may be off its core for
// long at any moment, so it takes no lock that serving goroutines take: those
// would wait with it. What needs such a lock it does Aloud.
func Quiet() { nice(niceness)() }

// Prompt moves the calling goroutine to a thread of its own that waits for no other's slice, for as long as the goroutine lives. It is for
// who clients wait for, and who works for some ten microseconds between two waits, or for a millisecond or two, once. Where the process
// may, it goes before others on a core; else it gets no more of it than its part.
func Prompt() {
	runtime.LockOSThread()
	hasten()
}

// Ease is for a prompt goroutine that comes to what nobody waits for: others have as much of a core as it from now on.
func Ease() { ease() }

// Promptly runs f on such a thread, and waits for its end.
func Promptly(f func()) { apart(Prompt, f) }

// Quietly runs f on a thread of a priority below that of quiet goroutines, and waits for its end. It is
// for what may come later than their work.
func Quietly(f func()) { apart(nice(patience), f) }

// Waiting is Quietly with the priority of quiet goroutines, for who waits for a disk more than it works.
func Waiting(f func()) { apart(Quiet, f) }

// Modestly is Quietly for what somebody may wait for: a little before quiet goroutines.
func Modestly(f func()) { apart(nice(modesty), f) }

// apart runs f on a thread of its own, of a kind, and waits for its end.
func apart(kind, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		kind()
		f()
	}()
	<-done
}

// nice is a kind of threads.
func nice(n int) func() {
	return func() {
		runtime.LockOSThread()
		_ = lower(n)
		Relieve()
	}
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
	Relieve()
}

// Relieve is for a goroutine with a thread of its own that has just been woken and will compute for long. The Go scheduler may have given it
// a processor for which others wait, and a thread that would have looked at the network. Both would wait with it: until the scheduler's
// own round, ten milliseconds, and longer if the thread is off its core. To start a goroutine wakes a thread that looks for all
// there is to do.
func Relieve() { go func() {}() }

// Piece is how many bytes bulk work moves at a time: kernels that are not preempted in the middle of a system
// call let nobody else on the core until it ends.
const Piece = 64 << 10

// Breathe is for quiet work between two pieces: whoever waits for the core or for the disk goes first.
func Breathe() { time.Sleep(breath) }

// breath spreads the copying of a segment over some hundred milliseconds.
const breath = 500 * time.Microsecond
