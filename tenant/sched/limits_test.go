package sched

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestATenantGetsTheCoresThatItMayAndNoMore(t *testing.T) {
	inBubble(t, Options{Workers: 2, Deadline: never, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{Cores: 0.25})
		began, done := time.Now(), make(chan struct{})
		var left atomic.Int64
		left.Store(4)
		for range 4 {
			must(t, share.Go(compute(500, time.Millisecond, func(error) {
				if left.Add(-1) == 0 {
					close(done)
				}
			})))
		}
		<-done
		// Two seconds of work at a quarter of a core are eight, less what it may have at once.
		took := time.Since(began)
		if took < 7500*time.Millisecond || took > 8500*time.Millisecond {
			t.Fatalf("2 s of work took %v", took)
		}
		if u := share.Usage(); u.CPU < 2*time.Second || u.Throttled == 0 {
			t.Fatalf("usage %+v", u)
		}
	})
}

func TestATenantOverItsCoresHoldsUpNobodyElse(t *testing.T) {
	inBubble(t, Options{Workers: 1, Deadline: never, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		poor, free := s.NewShare("poor", Limits{Cores: 0.01}), s.NewShare("free", Limits{})
		for range 50 {
			must(t, poor.Go(compute(100, time.Millisecond, func(error) {})))
		}
		time.Sleep(time.Second)
		if poor.Inline() {
			t.Error("it may run at the front door although it has used up its part")
		}
		began, done := time.Now(), make(chan struct{})
		must(t, free.Go(compute(100, time.Millisecond, func(error) { close(done) })))
		<-done
		if took := time.Since(began); took > 110*time.Millisecond {
			t.Fatalf("100 ms of work took %v", took)
		}
		poor.SetLimit(0)
		time.Sleep(10 * time.Second)
		if n := poor.Usage().Turns; n != 0 {
			t.Fatalf("%d calls still wait after the limit was taken away", n)
		}
	})
}

func TestTimeThatWasUsedElsewhereCounts(t *testing.T) {
	inBubble(t, Options{Workers: 1}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{Cores: 0.5})
		if !share.Inline() {
			t.Fatal("it has used nothing yet")
		}
		share.Charge(int64(time.Second))
		if share.Inline() {
			t.Fatal("it has used two seconds' worth at once")
		}
		time.Sleep(2 * time.Second)
		if !share.Inline() {
			t.Fatal("two seconds later it may run again")
		}
	})
}

func TestAFullQueueSaysSoAndLeavesRoomForOthers(t *testing.T) {
	inBubble(t, Options{Workers: 1, Queue: 10, TotalQueue: 15, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		a, b := s.NewShare("a", Limits{}), s.NewShare("b", Limits{})
		gate := make(chan struct{})
		wait := func(*Turn) { <-gate }
		for range 10 {
			must(t, a.Go(wait))
		}
		err := a.Go(wait)
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "tenant a") {
			t.Fatalf("error %v", err)
		}
		for range 5 {
			must(t, b.Go(wait))
		}
		if err := b.Go(wait); !errors.Is(err, ErrBusy) || strings.Contains(err.Error(), "tenant") {
			t.Fatalf("error %v", err)
		}
		close(gate)
		synctest.Wait()
		must(t, a.Go(wait))
		if m := s.Metrics(); m.Refused != 2 {
			t.Fatalf("%d calls were refused, want 2", m.Refused)
		}
	})
}

func TestACallIsEndedAtItsFirstYieldAfterItsDeadline(t *testing.T) {
	inBubble(t, Options{Workers: 1, Deadline: time.Second, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		began := time.Now()
		errs := make(chan error, 2)
		must(t, share.Go(func(u *Turn) {
			var err error
			for err == nil {
				time.Sleep(10 * time.Millisecond)
				err = u.Yield(StoreUse)
			}
			errs <- err
		}))
		if err := <-errs; !errors.Is(err, ErrLate) {
			t.Fatalf("error %v, want %v", err, ErrLate)
		}
		if took := time.Since(began); took < time.Second || took > 1100*time.Millisecond {
			t.Fatalf("it was ended after %v", took)
		}
	})
}

func TestACallThatHadNoTurnInTimeIsToldSo(t *testing.T) {
	inBubble(t, Options{Workers: 1, Deadline: time.Second, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{Cores: 0.001})
		share.Charge(int64(time.Minute))
		errs := make(chan error, 1)
		began := time.Now()
		must(t, share.Go(func(u *Turn) { errs <- u.Err() }))
		if err := <-errs; !errors.Is(err, ErrLate) {
			t.Fatalf("error %v, want %v", err, ErrLate)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Fatalf("it was told after %v", took)
		}
	})
}

func TestATenantWithTooManyLongCallsLosesTheNext(t *testing.T) {
	inBubble(t, Options{Workers: 2, Long: 2, Deadline: never, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		errs := make(chan error, 3)
		for range 3 {
			must(t, share.Go(compute(1000, time.Millisecond, func(err error) { errs <- err })))
		}
		if err := <-errs; !errors.Is(err, ErrLong) {
			t.Fatalf("error %v, want %v", err, ErrLong)
		}
		must(t, <-errs)
		must(t, <-errs)
	})
}

func TestAKilledCallEndsAtItsNextYield(t *testing.T) {
	inBubble(t, Options{Workers: 1}, func(t *testing.T, s *Scheduler) {
		why := errors.New("because")
		turn, ended := make(chan *Turn, 1), make(chan error, 1)
		must(t, s.NewShare("a", Limits{}).Go(func(u *Turn) {
			turn <- u
			compute(1<<30, time.Millisecond, func(err error) { ended <- err })(u)
		}))
		(<-turn).Kill(why)
		if err := <-ended; err != why {
			t.Fatalf("error %v", err)
		}
	})
}

// Lanes of two workers look for the same room at the same time, over and over: whoever misses that there is some waits for ever.
func TestNobodyMissesThatThereIsRoom(t *testing.T) {
	s := New(Options{Workers: 2, Begun: 1, NoLocality: true, Deadline: never, StuckAfter: never})
	share := s.NewShare("a", Limits{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			ended := make(chan struct{}, 1)
			for range 20_000 {
				must(t, share.Go(func(*Turn) { ended <- struct{}{} }))
				<-ended
			}
		})
	}
	callers.Wait()
	s.Close()
}

func TestACallThatWaitsForRoomIsToldWhenItsTimeIsOver(t *testing.T) {
	inBubble(t, Options{Workers: 1, Begun: 1, Deadline: 50 * time.Millisecond}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		must(t, share.Go(func(u *Turn) { u.Wait(func() { time.Sleep(time.Minute) }) }))
		time.Sleep(10 * time.Millisecond)
		for range 3 {
			began, ended := time.Now(), make(chan error, 1)
			must(t, share.Go(func(u *Turn) { ended <- u.Err() }))
			if err := <-ended; !errors.Is(err, ErrLate) {
				t.Errorf("it ended with %v", err)
			}
			if took := time.Since(began); took > 60*time.Millisecond {
				t.Errorf("it was told after %v", took)
			}
		}
	})
}
