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

func TestPollingThatFindsSomethingGoesOn(t *testing.T) {
	s := &Spinner{Limit: time.Hour, Yield: true}
	for range 100 {
		p := s.Begin()
		for range 3 {
			if p.Enough() {
				if s.skip.Load() == maxPenalty {
					t.Skip("the machine took the core away")
				}
				t.Fatal("gave up polling that always succeeds")
			}
		}
		p.Found()
	}
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
