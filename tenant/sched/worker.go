package sched

import (
	"sync"
	"sync/atomic"
	"time"
)

// crew are workers who help one another.
type crew struct {
	s       *Scheduler
	workers []*worker
	quantum int64        // nanoseconds that a turn runs before it makes way
	queued  atomic.Int64 // the sum of its workers'
}

func newCrew(s *Scheduler, n int, quantum time.Duration) *crew {
	c := &crew{s: s, quantum: int64(quantum)}
	for i := range n {
		w := &worker{crew: c, number: i}
		w.free.Store(true)
		c.workers = append(c.workers, w)
	}
	return c
}

// worker is the right to run, and the queue of those who wait for it. It belongs to a turn, or is free, or is
// in the hands of a goroutine that looks for its next turn: whoever changed free to false, or took it from its turn.
type worker struct {
	crew   *crew
	number int
	free   atomic.Bool
	queued atomic.Int64 // turns that can be taken
	beat   atomic.Int64 // when its turn was last heard of

	mu   sync.Mutex
	turn *Turn // who has it
	ring ring  // lanes with turns that can be taken
}

// wanted tells that another turn could run at a worker.
func (c *crew) wanted(w *worker) bool {
	if c.s.opts.NoStealing {
		return w.queued.Load() > 0
	}
	return c.queued.Load() > 0
}

// add puts a turn into its lane.
func (w *worker) add(t *Turn) {
	l := t.share.lane(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	l.push(t)
	if l.aside == forRoom && t.placed() {
		l.aside = no // It has begun, and needs no room.
	}
	switch {
	case l.aside != no:
		if t.deadline < l.lookAt {
			l.look(t.queuedAt, l.lookAt-t.queuedAt)
		}
	case l.linked:
		w.count(1)
	default:
		w.link(l)
	}
}

func (w *worker) count(n int) {
	w.queued.Add(int64(n))
	w.crew.queued.Add(int64(n))
}

// link puts a lane that has turns into the ring.
func (w *worker) link(l *lane) {
	l.linked = true
	w.ring.push(l)
	w.count(l.turns)
}

// take removes the turn that is next from the queue; nil: there is none.
func (w *worker) take(now int64) *Turn {
	if w.queued.Load() == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := w.ring.pop(); l != nil; l = w.ring.pop() {
		t := l.pop(now)
		if t == nil {
			l.linked = false
			w.count(-l.turns) // It was set aside, and comes back by itself.
			continue
		}
		if l.linked = l.turns > 0; l.linked {
			w.ring.push(l)
		}
		w.count(-1)
		return t
	}
	return nil
}

// find looks for a turn for the worker, which the caller has: of its own, or of neighbours.
func (w *worker) find(now int64) *Turn {
	t := w.take(now)
	if t == nil && !w.crew.s.opts.NoStealing {
		t = w.steal(now)
	}
	if t != nil {
		w.crew.s.counts.taken(now - t.queuedAt)
	}
	return t
}

func (w *worker) steal(now int64) *Turn {
	all := w.crew.workers
	for i := 1; i < len(all); i++ {
		if t := all[(w.number+i)%len(all)].take(now); t != nil {
			w.crew.s.counts.stolen.Add(1)
			return t
		}
	}
	return nil
}

// begin gives the worker, which the caller has, to a turn, which the caller has.
func (w *worker) begin(t *Turn, now int64) {
	if now > t.deadline {
		t.Kill(t.late(now))
	}
	t.worker, t.since = w, now
	w.beat.Store(now)
	w.mu.Lock()
	w.turn = t
	w.mu.Unlock()
}

// employ gives the worker, which the caller has, to whoever is next.
func (w *worker) employ() {
	now := w.crew.s.now()
	w.pass(w.find(now), now)
}

// pass gives the worker, which the caller has, to a turn, or frees it for lack of one. What came since nothing was
// found is seen by its sender, who looks for free workers after it has counted the turn, or here.
func (w *worker) pass(t *Turn, now int64) {
	for t == nil {
		w.free.Store(true)
		if !w.crew.wanted(w) || !w.free.CompareAndSwap(true, false) {
			return
		}
		w.crew.s.watch.wake()
		t = w.find(now)
	}
	w.begin(t, now)
	t.resume()
}

// rouse has a worker without work take a turn that waits at w.
func (c *crew) rouse(w *worker) {
	if w.queued.Load() == 0 {
		return
	}
	for i := range c.workers {
		v := c.workers[(w.number+i)%len(c.workers)]
		if v.free.Load() && v.free.CompareAndSwap(true, false) {
			c.s.watch.wake()
			v.employ()
			return
		}
		if c.s.opts.NoStealing {
			return
		}
	}
}
