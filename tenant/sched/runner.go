package sched

import "sync"

// runner is a goroutine that turns run on, one after another. Whoever has given a worker to a turn wakes its runner.
type runner struct {
	s     *Scheduler
	wake  chan *Turn // room for one
	quiet bool       // its thread has low priority, and ends with it
}

// keptRunners is how many goroutines are kept without work.
const keptRunners = 256

// pool has runners without work.
type pool struct {
	mu     sync.Mutex
	idle   []*runner
	closed bool
}

func (p *pool) get() *runner {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	r := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return r
}

// put keeps a runner, or returns false: it has to end.
func (p *pool) put(r *runner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= keptRunners {
		return false
	}
	p.idle = append(p.idle, r)
	return true
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, r := range p.idle {
		close(r.wake)
	}
	p.idle = nil
}

// resume lets the turn run, which has been given a worker.
func (t *Turn) resume() {
	if t.runner != nil {
		t.runner.wake <- t
		return
	}
	if t.runner = t.s.pool.get(); t.runner != nil {
		t.runner.wake <- t
		return
	}
	t.runner = &runner{s: t.s, wake: make(chan *Turn, 1)}
	go t.runner.run(t)
}

func (r *runner) run(t *Turn) {
	for t != nil {
		t.settle()
		t.f(t)
		if t = r.end(t); t != nil {
			continue
		}
		if r.quiet {
			return // The thread ends with its goroutine.
		}
		if !r.s.pool.put(r) {
			return
		}
		t = <-r.wake
	}
}

// end gives up a turn that is over. It returns one that has not begun and can be run by the same goroutine.
func (r *runner) end(t *Turn) *Turn {
	now := t.s.now()
	t.charge(now)
	w := t.leave()
	t.dismiss()
	if w == nil {
		return nil
	}
	n := w.find(now)
	if n != nil && n.runner == nil && !r.quiet {
		n.runner = r
		w.begin(n, now)
		return n
	}
	w.pass(n, now)
	return nil
}

// dismiss counts a turn that is over.
func (t *Turn) dismiss() {
	t.s.counts.ended.Add(1)
	switch {
	case t.used > int64(t.s.opts.LongAfter):
		t.share.settleDebt(t.used, t.wasted)
	case t.flags.Load()&killed == 0:
		t.share.trust(t.used)
	}
	if t.crew == t.s.long {
		t.share.long.Add(-1)
	} else {
		t.share.unbegin()
	}
	if t.hushed {
		t.share.unhush()
	}
	t.s.discharge(t.share)
}
