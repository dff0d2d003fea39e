package sched

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestATenantWhoseCallsAreLongHasLessTimeForTheNextUntilSomeAreShort(t *testing.T) {
	inBubble(t, Options{Workers: 1, Deadline: never, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share, other := s.NewShare("a", Limits{}), s.NewShare("b", Limits{})
		call := func(slices int, each time.Duration) {
			done := make(chan struct{})
			must(t, share.Go(compute(slices, each, func(error) { close(done) })))
			<-done
			synctest.Wait()
		}
		for range 10 {
			call(10, time.Millisecond)
		}
		if got := time.Duration(share.patience.Load()); got != s.opts.Quantum {
			t.Errorf("after ten long calls a call is short for %v, want %v", got, s.opts.Quantum)
		}
		before := s.Metrics().Long
		call(2, 100*time.Microsecond)
		if got := s.Metrics().Long; got != before+1 {
			t.Errorf("%d calls more became long, want that which ran for more than a quantum", got-before)
		}
		for range 100 {
			call(2, 100*time.Microsecond)
		}
		if got := time.Duration(share.patience.Load()); got != s.opts.LongAfter {
			t.Errorf("after a hundred short calls a call is short for %v, want %v", got, s.opts.LongAfter)
		}
		if got := time.Duration(other.patience.Load()); got != s.opts.LongAfter {
			t.Errorf("another tenant's calls are short for %v, want %v", got, s.opts.LongAfter)
		}
	})
}

func TestACrowdOfEndlessCallsLeavesThreadsToOthers(t *testing.T) {
	inBubble(t, Options{Workers: 1, LongWorkers: 1, QuietThreads: 3, QuietTurns: 2, Deadline: time.Second, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		crowd, modest := s.NewShare("crowd", Limits{}), s.NewShare("modest", Limits{})
		const calls = 20
		began := time.Now()
		errs := make(chan error, calls)
		for range calls {
			must(t, crowd.Go(compute(1<<30, time.Millisecond, func(err error) { errs <- err })))
		}
		time.Sleep(200 * time.Millisecond)
		if n := crowd.quiet.Load(); n != 2 {
			t.Errorf("%d of its calls have threads, want 2", n)
		}
		done := make(chan error, 1)
		from := time.Now()
		must(t, modest.Go(compute(20, time.Millisecond, func(err error) { done <- err })))
		must(t, <-done)
		if took := time.Since(from); took > 100*time.Millisecond {
			t.Errorf("20 ms of another tenant's took %v", took)
		}
		for range calls {
			if err := <-errs; !errors.Is(err, ErrLate) {
				t.Errorf("error %v, want %v", err, ErrLate)
			}
		}
		if took := time.Since(began); took > 1300*time.Millisecond {
			t.Errorf("those who waited for a thread were told after %v", took)
		}
		synctest.Wait()
		if crowd.quiet.Load() != 0 || s.quiet.Load() != 0 {
			t.Errorf("%d and %d threads are counted after the end", crowd.quiet.Load(), s.quiet.Load())
		}
	})
}
