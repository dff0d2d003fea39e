package sched

import (
	"testing"
	"testing/synctest"
	"time"
)

// wasteful is a function that would compute for ever, and has itself counted as such when it is ended.
func wasteful(each time.Duration, ended func(error)) func(*Turn) {
	endless := compute(1<<30, each, ended)
	return func(t *Turn) {
		endless(t)
		t.Waste()
	}
}

func TestTenantsWhoseLongCallsComeToNothingShareLittleTime(t *testing.T) {
	inBubble(t, Options{Workers: 1, LongWorkers: 1, Deadline: time.Second, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		shares := []*Share{s.NewShare("a", Limits{}), s.NewShare("b", Limits{})}
		used := func() (sum time.Duration) {
			for _, h := range shares {
				sum += h.Usage().CPU
			}
			return sum
		}
		crowd := func() time.Duration {
			before := used()
			for _, h := range shares {
				for range 10 {
					must(t, h.Go(wasteful(100*time.Microsecond, func(error) {})))
				}
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			return used() - before
		}
		if got := crowd(); got < 900*time.Millisecond {
			t.Errorf("tenants that nobody knows ran for %v of a second", got)
		}
		// What all of them run before they are long comes to that.
		if got, most := crowd(), time.Second/debtors+50*time.Millisecond; got > most {
			t.Errorf("those whose calls never ended ran for %v of a second, want at most %v", got, most)
		}
	})
}

func TestLongCallsThatEndPayForThoseThatDidNot(t *testing.T) {
	inBubble(t, Options{Workers: 1, LongWorkers: 1, Deadline: 5 * time.Second, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		done := make(chan error)
		tell := func(err error) { done <- err }
		run := func(f func(*Turn)) time.Duration {
			from := time.Now()
			must(t, share.Go(f))
			<-done
			synctest.Wait()
			return time.Since(from)
		}
		run(wasteful(100*time.Microsecond, tell))
		if got := share.debt.Load(); got != mostDebt {
			t.Fatalf("it owes %v, want the most, %v", time.Duration(got), time.Duration(mostDebt))
		}
		const each = 100 * time.Millisecond
		good := compute(int(each/(100*time.Microsecond)), 100*time.Microsecond, tell)
		if took := run(good); took < each*debtors/2 {
			t.Errorf("in debt, %v took %v", each, took)
		}
		for range mostDebt/int64(each) - 1 {
			run(good)
		}
		if took := run(good); took > 2*each || share.inDebt() {
			t.Errorf("when it had paid, %v took %v, and it owes %v", each, took, time.Duration(share.debt.Load()))
		}
	})
}

func TestACallOfATenantInDebtThatIsLateIsTold(t *testing.T) {
	inBubble(t, Options{Workers: 1, LongWorkers: 1, Deadline: time.Second, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		share.settleDebt(mostDebt, true)
		const calls = 30
		from := time.Now()
		errs := make(chan error, calls)
		for range calls {
			must(t, share.Go(wasteful(100*time.Microsecond, func(err error) { errs <- err })))
		}
		for range calls {
			if err := <-errs; err == nil {
				t.Error("an endless call ended well")
			}
		}
		if took := time.Since(from); took > 1500*time.Millisecond {
			t.Errorf("they were told after %v", took)
		}
	})
}

func TestATurnInDebtThatDoesNotComeBackInTimePaysForThat(t *testing.T) {
	const deadline = 4 * time.Second
	inBubble(t, Options{Workers: 1, LongWorkers: 1, Deadline: deadline, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := s.NewShare("a", Limits{})
		share.settleDebt(mostDebt, true)
		const each = 10 * time.Millisecond // of host calls, each as long as 25 quanta
		done := make(chan error)
		must(t, share.Go(wasteful(each, func(err error) { done <- err })))
		<-done
		synctest.Wait()
		if got, most := share.Usage().CPU, deadline/debtors+3*each; got > most {
			t.Errorf("it ran for %v of %v, want at most %v", got, deadline, most)
		}
	})
}

// owing is a tenant that owes all it can.
func owing(s *Scheduler, name string) *Share {
	share := s.NewShare(name, Limits{})
	share.settleDebt(mostDebt, true)
	return share
}

func TestWhatATenantRunsBeyondItsTicketsOthersInDebtDoNotWaitFor(t *testing.T) {
	inBubble(t, Options{Workers: 1, LongWorkers: 1, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		rude, other := owing(s, "rude"), owing(s, "other")
		const each = 50 * time.Millisecond // of host calls that do not come back
		for range 16 {
			must(t, rude.Go(wasteful(each, func(error) {})))
		}
		time.Sleep(3 * time.Second)
		const work = 20 * time.Millisecond
		done := make(chan error, 1)
		from := time.Now()
		must(t, other.Go(compute(int(work/(100*time.Microsecond)), 100*time.Microsecond, func(err error) { done <- err })))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		// Both have every second ticket while there are two, and now and then one of the rude tenant's host calls is before it.
		if took, most := time.Since(from), 2*debtors*work+3*each; took > most {
			t.Errorf("its call of %v took %v, want at most %v", work, took, most)
		}
	})
}

func TestATenantRestsForHalfOfWhatACallHasAtMost(t *testing.T) {
	const deadline = time.Second
	inBubble(t, Options{Workers: 1, LongWorkers: 1, Deadline: deadline, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		share := owing(s, "a")
		for range 100 {
			share.overrun(s.now(), int64(time.Second))
		}
		done := make(chan error, 1)
		must(t, share.Go(compute(50, 100*time.Microsecond, func(err error) { done <- err })))
		if err := <-done; err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}

func TestACallThatHasBegunIsToldInTimeThatItIsLate(t *testing.T) {
	const deadline = time.Second
	for name, c := range map[string]struct {
		limits Limits
		pause  func(h *Share)
	}{
		"of a tenant that rests":                 {Limits{}, func(h *Share) { h.settleDebt(mostDebt, true); h.rests.Store(int64(time.Hour)) }},
		"of a tenant that has used up its quota": {Limits{Cores: 0.001}, func(h *Share) { h.Charge(int64(time.Minute)) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{Workers: 1, LongWorkers: 1, Deadline: deadline, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
				share := s.NewShare("shop", c.limits)
				const calls = 3
				errs := make(chan error, calls)
				from := time.Now()
				for range calls {
					must(t, share.Go(compute(1<<30, 100*time.Microsecond, func(err error) { errs <- err })))
				}
				time.Sleep(20 * time.Millisecond)
				c.pause(share)
				for range calls {
					if err := <-errs; err == nil {
						t.Error("an endless call ended well")
					}
				}
				if took := time.Since(from); took > deadline+10*time.Millisecond {
					t.Errorf("the last of them was told after %v", took)
				}
			})
		})
	}
}
