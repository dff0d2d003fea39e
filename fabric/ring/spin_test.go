package ring

import (
	"testing"
	"time"
)

// inVain polls until the spinner has enough, and tells whether it polled at all.
func inVain(s *Spinner) bool {
	p := s.Begin()
	looks := 0
	for !p.Enough() {
		looks++
	}
	return looks > 0
}

func TestPollingInVainIsTriedLessAndLess(t *testing.T) {
	s := &Spinner{Limit: 100 * time.Microsecond}
	const tries = 300
	polled := 0
	for range tries {
		if inVain(s) {
			polled++
		}
	}
	if polled == 0 || polled > 20 {
		t.Fatalf("polled %d of %d times", polled, tries)
	}
}

// A machine that takes the core away has the spinner give up, and rightly. It does
// not do so in every one of many stretches.
func TestPollingThatFindsSomethingGoesOn(t *testing.T) {
	for range 1000 {
		if foundAlways(t) {
			return
		}
	}
	t.Fatal("gave up in each of 1000 stretches of polling that always succeeds")
}

// foundAlways tells whether polling went on; if not, the core was taken away.
func foundAlways(t *testing.T) bool {
	t.Helper()
	s := &Spinner{Limit: time.Hour, Yield: true}
	for range 100 {
		p := s.Begin()
		for range 3 {
			if p.Enough() {
				if s.skip.Load() != maxPenalty {
					t.Fatal("gave up polling that always succeeds")
				}
				return false
			}
		}
		p.Found()
	}
	return true
}

func TestASpinnerWithoutLimitsNeverSleeps(t *testing.T) {
	s := &Spinner{Limit: -1}
	p := s.Begin()
	for range 1000 {
		if p.Enough() {
			t.Fatal("slept")
		}
	}
}
