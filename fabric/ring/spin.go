package ring

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Spinner decides between polling and sleeping. Polling is quicker while the
// other side works on another core, and harmful when it waits for this one. So
// polling that was in vain is not tried again for a while, longer each time.
type Spinner struct {
	// Limit is how long to poll; negative is for ever.
	Limit time.Duration
	// Yield lets others run between two looks. It is of no use to a thread of
	// real-time priority.
	Yield bool

	skip    atomic.Int32 // so many times more sleep at once
	penalty atomic.Int32
}

const (
	maxPenalty = 64
	// A yield that takes this long gave the core to a program that computes: polling
	// would lose it again and again.
	crowdedAfter = 200 * time.Microsecond
)

// Spin is one stretch of polling.
type Spin struct {
	s     *Spinner
	since time.Time
	last  time.Time
}

// Begin starts a stretch when there is nothing to do.
func (s *Spinner) Begin() Spin { return Spin{s: s} }

// Enough tells, after each look in vain, whether to sleep now.
func (p *Spin) Enough() bool {
	if p.s.Limit < 0 {
		return false
	}
	if p.since.IsZero() {
		if p.s.skip.Load() > 0 {
			p.s.skip.Add(-1)
			return true
		}
		p.since = time.Now()
		p.last = p.since
		return p.s.Limit == 0
	}
	if p.s.Yield {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	now := time.Now()
	crowded := now.Sub(p.last) > crowdedAfter
	p.last = now
	if !crowded && now.Sub(p.since) < p.s.Limit {
		return false
	}
	p.inVain(crowded)
	return true
}

func (p *Spin) inVain(crowded bool) {
	penalty := min(max(1, 2*p.s.penalty.Load()), maxPenalty)
	if crowded {
		penalty = maxPenalty
	}
	p.s.penalty.Store(penalty)
	p.s.skip.Store(penalty)
}

// Found ends the stretch with something to do.
func (p *Spin) Found() {
	if !p.since.IsZero() {
		p.s.penalty.Store(0)
	}
}
