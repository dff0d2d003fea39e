package sched

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFullQueueOfOneTenantDelaysAnotherByASlice(t *testing.T) {
	inBubble(t, Options{Workers: 1, Queue: 20_000, StuckAfter: never, Deadline: never, LongAfter: never}, func(t *testing.T, s *Scheduler) {
		greedy, modest := s.NewShare("greedy", Limits{}), s.NewShare("modest", Limits{})
		var slices atomic.Int64
		for range 10_000 {
			must(t, greedy.Go(func(u *Turn) {
				for range 3 {
					slices.Add(1)
					time.Sleep(time.Millisecond)
					_ = u.Yield(SliceEnd)
				}
			}))
		}
		time.Sleep(100 * time.Millisecond)
		for range 20 {
			before, after := slices.Load(), int64(0)
			done := make(chan struct{})
			must(t, modest.Go(func(*Turn) { after = slices.Load(); close(done) }))
			<-done
			if after-before > 2 {
				t.Fatalf("another tenant ran %d slices before", after-before)
			}
		}
	})
}

func TestTenantsTakeTurnsBeforeTheirCallsDo(t *testing.T) {
	var b book
	inBubble(t, Options{Workers: 1, StuckAfter: never, LongAfter: never}, func(t *testing.T, s *Scheduler) {
		first := s.NewShare("first", Limits{})
		block := make(chan struct{})
		must(t, first.Go(func(*Turn) { <-block }))
		for _, name := range []string{"a", "b"} {
			share := s.NewShare(name, Limits{})
			for i := range map[string]int{"a": 3, "b": 1}[name] {
				must(t, share.Go(func(u *Turn) {
					for range 2 {
						b.add("%s%d", name, i)
						_ = u.Yield(Asked)
					}
				}))
			}
		}
		close(block)
		synctest.Wait()
	})
	// It is b's turn after each of a's, as long as b has any.
	if got := strings.Join(b.all(), " "); got != "a0 b0 a0 b0 a1 a2 a1 a2" {
		t.Fatalf("order: %s", got)
	}
}

func TestACallThatTurnsOutLongMakesWayForShortOnesOfItsTenant(t *testing.T) {
	inBubble(t, Options{Workers: 1, StuckAfter: never, LongAfter: 2 * time.Millisecond, Deadline: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		var long, ended atomic.Int64
		for range 5 {
			must(t, share.Go(compute(1000, time.Millisecond, func(error) { long.Add(1) })))
		}
		time.Sleep(100 * time.Millisecond)
		if n := s.Metrics().Long; n != 5 {
			t.Fatalf("%d calls are long ones, want 5", n)
		}
		for range 100 {
			must(t, share.Go(compute(1, 100*time.Microsecond, func(error) { ended.Add(1) })))
		}
		time.Sleep(20 * time.Millisecond)
		if ended.Load() != 100 || long.Load() != 0 {
			t.Fatalf("%d short calls and %d long ones have ended, want 100 and 0", ended.Load(), long.Load())
		}
	})
}

func TestATenantBeginsNoMoreCallsAtATimeThanItMay(t *testing.T) {
	inBubble(t, Options{Workers: 2, Begun: 3, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		gate := make(chan struct{})
		var begun, ended atomic.Int64
		for range 10 {
			must(t, share.Go(func(u *Turn) {
				begun.Add(1)
				u.Wait(func() { <-gate })
				ended.Add(1)
			}))
		}
		synctest.Wait()
		for want := int64(3); want <= 10; want++ {
			if begun.Load() != want {
				t.Fatalf("%d calls have begun, want %d", begun.Load(), want)
			}
			gate <- struct{}{}
			synctest.Wait()
		}
		close(gate)
		synctest.Wait()
		if ended.Load() != 10 {
			t.Fatalf("%d calls have ended", ended.Load())
		}
	})
}
