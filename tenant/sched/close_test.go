package sched

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestCloseEndsEveryCallAndTellsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Workers: 2, Begun: 4, Deadline: never})
		poor, rich := s.NewShare("poor", Limits{Cores: 0.001}), s.NewShare("rich", Limits{})
		gone := s.NewShare("gone", Limits{Cores: 0.001})
		var ended, told atomic.Int64
		note := func(err error) {
			ended.Add(1)
			if errors.Is(err, ErrClosed) {
				told.Add(1)
			}
		}
		for _, share := range []*Share{poor, rich, gone} {
			for range 20 {
				must(t, share.Go(compute(1<<30, time.Millisecond, note)))
			}
			for range 5 {
				must(t, share.Go(func(u *Turn) { u.Wait(func() { time.Sleep(time.Second) }); note(u.Yield(Asked)) }))
			}
		}
		gone.Close()
		time.Sleep(100 * time.Millisecond)
		s.Close()
		if ended.Load() != 75 || told.Load() != 75 {
			t.Errorf("%d calls have ended, %d of them were told, want 75", ended.Load(), told.Load())
		}
		if err := rich.Go(func(*Turn) {}); !errors.Is(err, ErrClosed) {
			t.Errorf("error %v, want %v", err, ErrClosed)
		}
		s.Close()
	})
}

func TestCloseOfASchedulerThatDidNothing(t *testing.T) {
	synctest.Test(t, func(*testing.T) { New(Options{}).Close() })
}
