package sched

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Whoever only waited is told so, and why, and what to do.
func TestACallThatOnlyWaitedIsToldWhy(t *testing.T) {
	for _, c := range []struct {
		name, want string
		limits     Limits
		before     func(s *Scheduler, h *Share)
	}{
		{"debt", "tenant shop owes 1s of CPU time for calls that came to nothing", Limits{}, func(_ *Scheduler, h *Share) { h.settleDebt(mostDebt, true) }},
		{"quota", "tenant shop has used up its CPU time: wait, or have its limit of function-cpu raised", Limits{Cores: 0.001}, func(_ *Scheduler, h *Share) { h.Charge(int64(time.Minute)) }},
		{"others", "others had their turns meanwhile: call again later", Limits{}, func(s *Scheduler, _ *Share) {
			_ = s.NewShare("rude", Limits{}).Go(func(*Turn) { time.Sleep(2 * time.Second) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, Options{Workers: 1, LongWorkers: 1, Deadline: time.Second, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
				share := s.NewShare("shop", c.limits)
				c.before(s, share)
				errs := make(chan error, 1)
				must(t, share.Go(compute(1<<30, 100*time.Microsecond, func(err error) { errs <- err })))
				err := <-errs
				var late *Late
				if !errors.As(err, &late) || !errors.Is(err, ErrLate) || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v, want one that says %q", err, c.want)
				}
				if late.Most != time.Second || late.Ran > 100*time.Millisecond {
					t.Errorf("it ran for %v of %v", late.Ran, late.Most)
				}
			})
		})
	}
}

func TestACallThatRanAllTheTimeIsToldToDoLess(t *testing.T) {
	inBubble(t, Options{Workers: 1, LongWorkers: 1, Deadline: time.Second, StuckAfter: never}, func(t *testing.T, s *Scheduler) {
		errs := make(chan error, 1)
		must(t, s.NewShare("shop", Limits{}).Go(compute(1<<30, 100*time.Microsecond, func(err error) { errs <- err })))
		if err := <-errs; err != ErrLate {
			t.Fatalf("error %v, want %v", err, ErrLate)
		}
	})
}
