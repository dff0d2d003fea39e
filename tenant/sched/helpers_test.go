package sched

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Tests run in a bubble, where time passes only while everybody sleeps or waits: what "computes" sleeps, and what a test says
// about time is about the scheduler's decisions, not about the machine.

const never = time.Hour * 1000

// inBubble runs f with a scheduler that is closed at the end.
func inBubble(t *testing.T, opts Options, f func(t *testing.T, s *Scheduler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(opts)
		f(t, s)
		s.Close()
		if m := s.Metrics(); m.Turns != 0 || m.Queued != 0 || m.Running != 0 {
			t.Errorf("after the end: %+v", m)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// book notes what happens in which order.
type book struct {
	mu    sync.Mutex
	lines []string
}

func (b *book) add(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

func (b *book) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.lines...)
}

// compute is a function that runs for so many slices of a time.
func compute(slices int, each time.Duration, ended func(error)) func(*Turn) {
	return func(t *Turn) {
		err := t.Err()
		for i := 0; i < slices && err == nil; i++ {
			time.Sleep(each)
			err = t.Yield(SliceEnd)
		}
		ended(err)
	}
}
