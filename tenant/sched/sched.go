// Package sched gives tenants' functions their turns.
//
// A call that is short runs where it arrived, on a front door's loop. What is
// here are the others: calls that wait for a disk or a lock, and calls that
// compute for longer than a loop may stand still.
//
// A turn has a goroutine of its own, for a guest's stack cannot be put away in
// any other way, and runs only while it holds a worker. There are as many
// workers as cores: a worker is no thread, it is the right to run. Turns come
// back to Yield often; there the worker goes to whoever is next.
//
//	           +-- worker: tenant A [t t t]  tenant B [t]     short turns
//	Go --------+-- worker: tenant C [t]
//	           |      | after LongAfter, or stuck
//	           +-- worker: tenant A [t t]                     long turns, few at a time, quiet threads
//
// Invariants:
//   - A turn runs only while it holds a worker, but for one that was taken off
//     its worker by the watchdog: it runs until its next Yield.
//   - A long turn runs on a thread of low priority, and waits until there is one for it.
//   - Long turns of tenants who owe for turns that came to nothing have a small part of the long workers' time, together.
//   - A worker's next turn is that of the tenant whose last turn there was
//     longest ago. So a tenant waits for at most one slice of each other tenant,
//     however much those have in their queues.
//   - A tenant's turns wait at its home worker. Workers who have nothing to
//     do take them from there; after their slice they are at home again.
//   - Every function that Go took is called once, also when its time is over or
//     the scheduler is closed: then Err says so from its beginning.
package sched

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options are those of a Scheduler. Zero values are defaults.
type Options struct {
	// Workers is how many short turns run at a time: GOMAXPROCS.
	Workers int
	// LongWorkers is how many long turns run at a time, beside those: half as many as workers.
	LongWorkers int
	// QuietThreads is how many long turns have a thread of low priority at a time; others wait for one: 32.
	QuietThreads int
	// QuietTurns is how many of these a tenant has at most: 4.
	QuietTurns int
	// NoStealing leaves a worker idle although others have turns that wait.
	NoStealing bool
	// NoLocality lets turns of a tenant begin at any worker.
	NoLocality bool

	// Quantum is how long a turn runs before it makes way for another, unless it asks to: 50 us.
	Quantum time.Duration
	// LongAfter is how long a turn runs, in all, before it is a long one: 2 ms. It is less for tenants whose turns were
	// longer than that of late, down to a quantum.
	LongAfter time.Duration
	// StuckAfter is how long a turn may hold a worker without coming back while others wait there: 3 ms.
	StuckAfter time.Duration
	// Deadline is how long a turn may take from Go to its end, waiting included: 5 s.
	Deadline time.Duration

	// Queue is how many turns of a tenant there are at most, running or not: 4,096.
	Queue int
	// TotalQueue is the same for all tenants together: 65,536.
	TotalQueue int
	// Begun is how many short turns of a tenant have begun and not ended at most; others wait in its queue: 64.
	Begun int
	// Long is how many long turns a tenant has at most; what would be one more is ended: 64.
	Long int
}

func (o Options) withDefaults() Options {
	o.Workers = or(o.Workers, runtime.GOMAXPROCS(0))
	o.LongWorkers = or(o.LongWorkers, max(1, o.Workers/2))
	o.QuietThreads = or(o.QuietThreads, 32)
	o.QuietTurns = or(o.QuietTurns, 4)
	o.Quantum = or(o.Quantum, 50*time.Microsecond)
	o.LongAfter = or(o.LongAfter, 2*time.Millisecond)
	o.StuckAfter = or(o.StuckAfter, 3*time.Millisecond)
	o.Deadline = or(o.Deadline, 5*time.Second)
	o.Queue = or(o.Queue, 4096)
	o.TotalQueue = or(o.TotalQueue, 65_536)
	o.Begun = or(o.Begun, 64)
	o.Long = or(o.Long, 64)
	return o
}

func or[T int | time.Duration](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}

// Reason is why a turn lets others run.
type Reason byte

// Reasons.
const (
	SliceEnd Reason = iota // it has used up its slice of fuel
	Asked                  // the function called yield
	StoreUse               // it is about to use the store
)

// Errors of Go, and of turns that were ended.
var (
	ErrBusy   = errors.New("too many calls of functions wait")
	ErrLate   = errors.New("it took longer than a call may: have it do less at a time")
	ErrLong   = errors.New("its tenant has too many long calls at a time: wait for their end")
	ErrClosed = errors.New("the server stops")
)

// Full is a call that finds no room in a queue. It is an ErrBusy.
type Full struct {
	Tenant string // empty: all of them together
	Limit  int
}

func (e *Full) Error() string {
	if e.Tenant == "" {
		return fmt.Sprintf("this node has %d calls of functions that wait, and takes no more: call again later, or have fewer at a time", e.Limit)
	}
	return fmt.Sprintf("tenant %s has %d calls of functions that wait, and can have no more: wait for answers, or have its limit of function-cpu raised", e.Tenant, e.Limit)
}

// Unwrap makes it an ErrBusy.
func (e *Full) Unwrap() error { return ErrBusy }

// Scheduler has the workers of a node.
type Scheduler struct {
	opts   Options
	start  time.Time
	closed atomic.Bool
	stop   chan struct{}
	ended  sync.WaitGroup // turns, and the watchdog

	short, long *crew
	pool        pool
	watch       watch
	total       atomic.Int64 // turns that have not ended
	quiet       atomic.Int64 // threads of low priority
	spray       atomic.Uint64
	tickets     tickets
	counts      counts

	mu     sync.Mutex // also: no turn is added after Close has looked
	shares map[*Share]struct{}
	homes  []int // how many of them are at home at each worker
}

// New makes a scheduler.
func New(opts Options) *Scheduler {
	s := &Scheduler{opts: opts.withDefaults(), start: time.Now(), stop: make(chan struct{}), shares: map[*Share]struct{}{}}
	s.short = newCrew(s, s.opts.Workers, s.opts.Quantum)
	s.long = newCrew(s, s.opts.LongWorkers, longQuanta*s.opts.Quantum)
	s.homes = make([]int, s.opts.Workers)
	s.watch.bell = make(chan struct{}, 1)
	s.ended.Add(1)
	go s.guard()
	return s
}

// longQuanta is how many quanta a long turn runs at a time: nobody in a hurry waits for it, and to change threads costs more.
const longQuanta = 8

func (s *Scheduler) now() int64 { return int64(time.Since(s.start)) }

// Go has f called when its turn comes. It does not wait. An ErrBusy says that there are too many already.
func (s *Scheduler) Go(share *Share, f func(*Turn)) error {
	if err := s.admit(share); err != nil {
		s.counts.refused.Add(1)
		return err
	}
	now := s.now()
	t := &Turn{s: s, share: share, f: f, crew: s.short, home: share.home, deadline: now + int64(s.opts.Deadline)}
	if s.opts.NoLocality {
		t.home = int(s.spray.Add(1) % uint64(len(s.short.workers)))
	}
	t.queue(now)
	return nil
}

// Go has f called when the tenant's turn comes: see Scheduler.Go.
func (h *Share) Go(f func(*Turn)) error { return h.s.Go(h, f) }

func (s *Scheduler) admit(share *Share) error {
	if n := share.turns.Add(1); n > int64(s.opts.Queue) {
		share.turns.Add(-1)
		share.refused.Add(1)
		return &Full{Tenant: share.name, Limit: s.opts.Queue}
	}
	if n := s.total.Add(1); n > int64(s.opts.TotalQueue) {
		s.discharge(share)
		return &Full{Limit: s.opts.TotalQueue}
	}
	// Close sets closed before it looks at total: either it waits for this turn, or this turn sees it.
	if s.closed.Load() {
		s.discharge(share)
		return ErrClosed
	}
	return nil
}

func (s *Scheduler) discharge(share *Share) {
	share.turns.Add(-1)
	if s.total.Add(-1) == 0 && s.closed.Load() {
		s.watch.ring()
	}
}

// Close ends all turns at their next Yield, and returns when they have ended.
func (s *Scheduler) Close() {
	if s.closed.Swap(true) {
		s.ended.Wait()
		return
	}
	s.mu.Lock()
	for share := range s.shares {
		share.release()
	}
	s.mu.Unlock()
	s.watch.ring()
	s.ended.Wait()
	s.pool.close()
}
