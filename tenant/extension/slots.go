package extension

import "sync/atomic"

// slot holds the idle instance of one worker, on a cache line of its own.
type slot struct {
	idle atomic.Pointer[instance]
	_    [56]byte
}

func (p *Pool) slotOf(worker int) *slot { return &p.slots[worker&(len(p.slots)-1)] }

// take finds an idle instance or makes one. For a trial none is made: that runs code of the module, copies its memory, and
// may take long.
func (p *Pool) take(s *slot, turns Turns, trial bool) (*instance, error) {
	if in := s.idle.Swap(nil); in != nil {
		return in, nil
	}
	in, err := p.takeOther(trial)
	if in != nil || err != nil {
		return in, err
	}
	if in, err = p.newInstance(turns); err != nil {
		p.mu.Lock()
		p.made--
		p.mu.Unlock()
		return nil, err
	}
	in.task = nil // That of its beginning.
	return in, nil
}

// takeOther finds one that is no worker's, or another worker's. If there is none it returns none, and the caller makes
// one, which is counted already.
func (p *Pool) takeOther(trial bool) (*instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return nil, ErrClosed
	}
	if n := len(p.idle); n > 0 {
		in := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return in, nil
	}
	for i := range p.slots {
		if in := p.slots[i].idle.Swap(nil); in != nil {
			return in, nil
		}
	}
	if trial || p.opts.Instances > 0 && p.made >= p.opts.Instances {
		return nil, ErrBusy
	}
	p.made++
	p.metrics.Made++
	return nil, nil
}

// flushEvery is after how many calls an instance tells what it did, if nobody has asked before.
const flushEvery = 256

// put takes an instance back after calls.
func (p *Pool) put(s *slot, in *instance) {
	if in.calls >= flushEvery || !s.idle.CompareAndSwap(nil, in) {
		p.putList(s, in)
		return
	}
	// The pool may have been closed since, or its tenant's limit lowered: then whoever sees it last takes the instance
	// out again, also where somebody has moved it to the list meanwhile.
	if p.closed.Load() || p.scarce() {
		p.Trim(0)
	}
}

// putList counts what an instance has done and keeps it, where there is room.
func (p *Pool) putList(s *slot, in *instance) {
	p.mu.Lock()
	p.flush(in)
	switch {
	case p.closed.Load() || p.scarce():
	case s.idle.CompareAndSwap(nil, in):
		p.mu.Unlock()
		return
	case len(p.idle) < p.opts.Idle-len(p.slots):
		p.idle = append(p.idle, in)
		p.mu.Unlock()
		return
	}
	p.forget(in)
	p.mu.Unlock()
	in.close()
}

func (p *Pool) drop(in *instance) {
	p.mu.Lock()
	p.forget(in)
	p.mu.Unlock()
	in.close()
}

// forget counts an instance that goes. The lock is held.
func (p *Pool) forget(in *instance) {
	p.flush(in)
	p.made--
}

// gather moves what is in slots to the list, and counts what instances there have done. The lock is held, so whoever
// finds its slot empty waits until it is done.
func (p *Pool) gather() {
	for i := range p.slots {
		if in := p.slots[i].idle.Swap(nil); in != nil {
			p.idle = append(p.idle, in)
		}
	}
	for _, in := range p.idle {
		p.flush(in)
	}
}

// flush adds what an instance has counted. The lock is held, and the instance is the caller's.
func (p *Pool) flush(in *instance) {
	m := &p.metrics
	m.Calls += in.calls
	m.Reused += in.calls
	if in.first && in.calls > 0 {
		in.first = false
		m.Reused--
	}
	m.Failures += in.failures
	m.Abandoned += in.abandoned
	m.Fuel += in.burnt
	m.HostCalls += in.hostCalls
	m.Reset += in.resets
	in.counts = counts{first: in.first}
}

// counts are what an instance did since it was last asked.
type counts struct {
	calls, failures, abandoned uint64
	burnt, hostCalls, resets   uint64
	first                      bool // no call was counted yet
}
