package sched

import (
	"sync/atomic"
	"time"
)

// watch is what wakes the watchdog, which sleeps while nothing runs.
type watch struct {
	asleep atomic.Bool
	bell   chan struct{} // room for one
}

// wake is called by whoever has made a worker busy.
func (w *watch) wake() {
	if w.asleep.Load() {
		w.ring()
	}
}

func (w *watch) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// longestLook is how long the watchdog looks away at most: it also finds turns that are late.
const longestLook = 10 * time.Millisecond

// guard is the watchdog: it looks after turns that do not come back. It is the last to go.
func (s *Scheduler) guard() {
	defer s.ended.Done()
	for !s.over() {
		s.watch.asleep.Store(true)
		if !s.active() && !s.over() {
			<-s.watch.bell
		}
		s.watch.asleep.Store(false)
		for s.active() {
			time.Sleep(min(s.opts.StuckAfter/3, longestLook))
			s.look(s.now())
		}
	}
}

func (s *Scheduler) over() bool { return s.closed.Load() && s.total.Load() == 0 }

func (s *Scheduler) active() bool {
	for _, c := range []*crew{s.short, s.long} {
		for _, w := range c.workers {
			if !w.free.Load() {
				return true
			}
		}
	}
	return false
}

// longPatience is how much longer the watchdog waits for long turns, whose threads the kernel lets wait.
const longPatience = 30

func (s *Scheduler) look(now int64) {
	stuck := int64(s.opts.StuckAfter)
	for _, w := range s.short.workers {
		w.look(now, stuck)
	}
	for _, w := range s.long.workers {
		w.look(now, longPatience*stuck)
	}
}

// look ends a turn that is late at its next Yield, and takes the worker from one that is stuck while others wait.
func (w *worker) look(now, stuck int64) {
	w.mu.Lock()
	t := w.turn
	if t == nil {
		w.mu.Unlock()
		return
	}
	if now > t.deadline {
		t.flags.Or(overdue)
	}
	taken := now-w.beat.Load() > stuck && w.queued.Load() > 0
	if taken {
		t.flags.Or(displaced)
		w.turn = nil
	}
	w.mu.Unlock()
	if taken {
		w.crew.s.counts.replaced.Add(1)
		w.employ()
	}
}
