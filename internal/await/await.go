// Package await is for tests of what happens in the background: they wait until it has
// happened, however slow the machine is, and fail if it never does.
package await

import (
	"testing"
	"time"
)

// Patience is how long a condition may take. No test is slower for it: who waits goes on within
// a millisecond.
const Patience = 5 * time.Minute

// True waits for a condition.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Comes(holds) {
		t.Fatalf("waited %s in vain until %s", Patience, what)
	}
}

// Comes waits for a condition as well, and says whether it came, for those who can say more about why not.
func Comes(holds func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(Patience); !holds(); {
		select {
		case <-tick.C:
		case <-late:
			return false
		}
	}
	return true
}
