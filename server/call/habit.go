package call

import "github.com/ostrodb/ostro/tenant/library"

// A function's habit is how often its trials did not suffice in a row, in the upper half, and in the lower
// how many calls go to the scheduler before the next trial. Workers that count at the same time may lose one.

const (
	habitSkip  = 1<<32 - 1
	habitMost  = 10 // doublings
	habitFirst = 8  // calls without a trial after one that did not suffice
)

// tryInline tells whether a call should be tried where it begins.
func tryInline(f *library.Function) bool {
	h := f.Habit.Load()
	if h&habitSkip == 0 {
		return true
	}
	f.Habit.Store(h - 1)
	return false
}

// long notes that a trial did not suffice.
func long(f *library.Function) {
	times := min(f.Habit.Load()>>32+1, habitMost)
	f.Habit.Store(times<<32 | habitFirst<<times)
}
