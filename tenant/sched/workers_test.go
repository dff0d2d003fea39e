package sched

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pair starts two calls of which the first, which keeps its worker, waits for the second.
func pair(t *testing.T, s *Scheduler) (ended *atomic.Int64) {
	share, second := s.NewShare("a", Limits{}), make(chan struct{})
	ended = new(atomic.Int64)
	must(t, share.Go(func(u *Turn) { <-second; ended.Add(1) }))
	must(t, share.Go(func(u *Turn) { close(second); ended.Add(1) }))
	return ended
}

func TestAnIdleWorkerTakesWhatWaitsAtAnother(t *testing.T) {
	inBubble(t, Options{Workers: 2, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		ended := pair(t, s)
		synctest.Wait()
		if m := s.Metrics(); ended.Load() != 2 || m.Stolen != 1 || m.Replaced != 0 {
			t.Fatalf("%d calls have ended, %+v", ended.Load(), m)
		}
	})
}

func TestWithoutStealingAnIdleWorkerStaysIdle(t *testing.T) {
	inBubble(t, Options{Workers: 2, NoStealing: true, StuckAfter: time.Second}, func(t *testing.T, s *Scheduler) {
		ended := pair(t, s)
		synctest.Wait()
		if ended.Load() != 0 {
			t.Fatal("a call has run that waits for a worker that is taken")
		}
		time.Sleep(2 * time.Second) // The watchdog helps.
		if m := s.Metrics(); ended.Load() != 2 || m.Stolen != 0 || m.Replaced != 1 {
			t.Fatalf("%d calls have ended, %+v", ended.Load(), m)
		}
	})
}

func TestATenantsCallsBeginAtItsHome(t *testing.T) {
	for _, spread := range []bool{false, true} {
		inBubble(t, Options{Workers: 4, NoLocality: spread, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
			share := s.NewShare("a", Limits{})
			seen := map[int]bool{}
			for range 8 {
				done := make(chan int)
				must(t, share.Go(func(u *Turn) { done <- u.worker.number }))
				seen[<-done] = true
				synctest.Wait()
			}
			if want := map[bool]int{false: 1, true: 4}[spread]; len(seen) != want {
				t.Errorf("spread %t: calls ran at %d workers, want %d", spread, len(seen), want)
			}
		})
	}
}

func TestTenantsHaveHomesAtAllWorkers(t *testing.T) {
	inBubble(t, Options{Workers: 4}, func(t *testing.T, s *Scheduler) {
		var all []*Share
		for range 8 {
			all = append(all, s.NewShare("x", Limits{}))
		}
		all[1].Close()
		all[5].Close()
		if next := s.NewShare("y", Limits{}); next.home != all[1].home {
			t.Errorf("the next is at home at %d, want %d, which has the fewest", next.home, all[1].home)
		}
		for i, n := range s.homes {
			if n > 2 || n < 1 {
				t.Errorf("%d tenants are at home at worker %d", n, i)
			}
		}
	})
}

func TestTheWatchdogTakesWhatIsLeftFromAStuckWorker(t *testing.T) {
	inBubble(t, Options{Workers: 1, StuckAfter: 3 * time.Millisecond}, func(t *testing.T, s *Scheduler) {
		stuck, others := s.NewShare("stuck", Limits{}), s.NewShare("others", Limits{})
		release := make(chan struct{})
		var ended atomic.Int64
		must(t, stuck.Go(func(u *Turn) {
			<-release
			must(t, u.Yield(SliceEnd))
			ended.Add(1)
		}))
		synctest.Wait()
		for range 5 {
			must(t, others.Go(func(*Turn) { ended.Add(1) }))
		}
		time.Sleep(5 * time.Millisecond)
		if m := s.Metrics(); ended.Load() != 5 || m.Replaced != 1 {
			t.Fatalf("%d calls have ended, %+v", ended.Load(), m)
		}
		close(release)
		synctest.Wait()
		if m := s.Metrics(); ended.Load() != 6 || m.Long != 1 {
			t.Fatalf("%d calls have ended, %+v", ended.Load(), m)
		}
	})
}

func TestAStuckCallThatNobodyWaitsForKeepsItsWorker(t *testing.T) {
	inBubble(t, Options{Workers: 1}, func(t *testing.T, s *Scheduler) {
		done := make(chan struct{})
		must(t, s.NewShare("a", Limits{}).Go(func(*Turn) { time.Sleep(time.Second); close(done) }))
		<-done
		if m := s.Metrics(); m.Replaced != 0 {
			t.Fatalf("%+v", m)
		}
	})
}

func TestAnEndOfACallThatLostItsWorkerHurtsNobody(t *testing.T) {
	inBubble(t, Options{Workers: 1}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		var ended atomic.Int64
		for range 10 {
			must(t, share.Go(func(*Turn) { time.Sleep(20 * time.Millisecond); ended.Add(1) }))
		}
		time.Sleep(time.Second)
		if m := s.Metrics(); ended.Load() != 10 || m.Replaced != 9 || m.Running != 0 {
			t.Fatalf("%d calls have ended, %+v", ended.Load(), m)
		}
	})
}

func TestWhoWaitsForDataLeavesTheWorkerToOthers(t *testing.T) {
	inBubble(t, Options{Workers: 1, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		data := make(chan struct{})
		var ended atomic.Int64
		must(t, share.Go(func(u *Turn) { u.Wait(func() { <-data }); ended.Add(1) }))
		synctest.Wait()
		if m := s.Metrics(); m.Waiting != 1 || m.Running != 0 {
			t.Fatalf("%+v", m)
		}
		must(t, share.Go(func(u *Turn) { close(data); ended.Add(1) }))
		synctest.Wait()
		if ended.Load() != 2 {
			t.Fatalf("%d calls have ended", ended.Load())
		}
	})
}

func TestStoreUsesGiveWayAfterAWhile(t *testing.T) {
	inBubble(t, Options{Workers: 1, StuckAfter: never, LongAfter: never, Quantum: time.Millisecond}, func(t *testing.T, s *Scheduler) {
		a, b := s.NewShare("a", Limits{}), s.NewShare("b", Limits{})
		uses, at := 0, 0
		must(t, a.Go(func(u *Turn) {
			for range 60 {
				time.Sleep(100 * time.Microsecond)
				uses++
				must(t, u.Yield(StoreUse))
			}
		}))
		must(t, b.Go(func(*Turn) { at = uses }))
		time.Sleep(time.Second)
		synctest.Wait()
		if uses != 60 || at != 10 {
			t.Fatalf("the other call ran after %d uses of the store of %d, want 10 of 60", at, uses)
		}
	})
}
