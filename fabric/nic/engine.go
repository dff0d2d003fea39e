// Package nic is the soft NIC: an engine that executes work requests on mapped
// memory, as an RDMA NIC does in hardware. It runs inside a node or as a
// process of its own.
//
//	program ── rings, doorbells ──▶ engine ── moves bytes ──▶ regions of the peer
//	        ◀── completions ───────   │
//	                                  └── links (TCP) ──▶ engines of other machines
//
// Invariants:
//   - One thread, the engine's loop, touches regions, queues and sockets. Whoever
//     else wants something sends it a command and waits. So a command that removes
//     a region or a queue pair is a fence: when it has run, nothing lands there.
//   - The loop takes no lock, allocates nothing per request, and moves at most a
//     slice of bytes for one queue pair before it turns to the next.
//   - A program's shared memory is never trusted: requests are copied before they
//     are checked, and the engine keeps counters of its own.
//   - Memory that fails (a file cut under its mapping) fails the request, not the engine.
package nic

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

// Config says how an engine runs.
type Config struct {
	// Spin is how long the engine polls after its last work before it sleeps.
	// Negative polls for ever: only for a core of its own.
	Spin time.Duration
	// RealTime asks for this SCHED_RR priority for the process' threads; 0 leaves
	// them as they are.
	RealTime int
	Log      *slog.Logger
}

// DefaultSpin is long enough for a chain of requests to come back, and short
// enough to leave the core to others.
const DefaultSpin = 20 * time.Microsecond

// Engine executes the work requests of all sessions attached to it.
type Engine struct {
	id   fabric.NICID
	conf Config

	// Set by Listen, in the loop.
	addr  string // where other engines reach this one
	board *Switchboard

	// Commands from outside of the loop.
	mu       sync.Mutex
	commands []func()
	pending  atomic.Bool
	closed   bool
	done     chan struct{}

	// All below belongs to the loop.
	poll     poller
	stopping bool
	sessions []*Session
	regions  []*region
	freed    []uint32 // free places in regions
	qps      []*qp
	cqs      []*cq
	first    *qp // run queue, linked by qp.nextRun
	last     *qp
	unowned  []*qp     // stalled at a request that is the host's
	timed    []*qp     // have a deadline
	parked   []*callee // wait for a RECV
	draining []*callee // wait for their refused peer to hang up
	dirty    []*caller // have something to write
	totals   fabric.Metrics
}

// New starts an engine.
func New(c Config) (*Engine, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Spin == 0 {
		c.Spin = DefaultSpin
	}
	e := &Engine{
		conf: c, done: make(chan struct{}),
		// Number 0 names nothing, so that zeroed memory does not name the first.
		regions: make([]*region, 1), qps: make([]*qp, 1), cqs: make([]*cq, 1),
	}
	if _, err := rand.Read(e.id[:]); err != nil {
		return nil, fmt.Errorf("nic: %w", err)
	}
	if err := e.poll.open(); err != nil {
		return nil, fmt.Errorf("nic: %w", err)
	}
	started := make(chan struct{})
	go e.loop(started)
	<-started
	return e, nil
}

// ID tells this NIC apart from all others.
func (e *Engine) ID() fabric.NICID { return e.id }

// Close stops the engine. Attached sessions find it gone.
func (e *Engine) Close() error {
	err := e.do(func() { e.stopping = true })
	if errors.Is(err, fabric.ErrClosed) {
		return nil
	}
	<-e.done
	return err
}

// do runs f in the loop and returns when it has run.
func (e *Engine) do(f func()) error {
	ran := make(chan struct{})
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return fabric.ErrClosed
	}
	e.commands = append(e.commands, func() { f(); close(ran) })
	e.pending.Store(true)
	e.poll.wake() // Under the lock: a loop that has obeyed may end, and its descriptor be another file's.
	e.mu.Unlock()
	<-ran
	return nil
}

func (e *Engine) obey() {
	e.pending.Store(false)
	e.mu.Lock()
	commands := e.commands
	e.commands = nil
	e.mu.Unlock()
	for _, f := range commands {
		f()
	}
}

func (e *Engine) loop(started chan<- struct{}) {
	runtime.LockOSThread()
	debug.SetPanicOnFault(true)
	if e.conf.RealTime > 0 {
		prioritize(e.conf.RealTime, e.conf.Log)
	}
	close(started)
	spinner := ring.Spinner{Limit: e.conf.Spin, Yield: policy() == schedOther}
	idle := spinner.Begin()
	for !e.stopping {
		if e.pass() {
			idle.Found()
			idle = spinner.Begin()
		} else if idle.Enough() {
			e.sleep()
			idle = spinner.Begin()
		}
	}
	e.shut()
	close(e.done)
}

// shut refuses further commands, runs those that slipped in, and lets go of everything.
func (e *Engine) shut() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.obey()
	for len(e.sessions) > 0 {
		e.detach(e.sessions[0])
	}
	for len(e.draining) > 0 {
		e.draining[0].gone(e)
	}
	e.poll.close()
}

// pass does one round and tells whether there was anything to do.
func (e *Engine) pass() bool {
	busy := false
	if e.pending.Load() {
		e.obey()
		busy = true
	}
	for _, s := range e.sessions {
		s.bells.Take(s.words, s.heard)
	}
	if e.poll.links > 0 && e.poll.ready(e, 0) {
		busy = true
	}
	for stop := e.last; e.first != nil; {
		q := e.first
		e.unqueue()
		e.run(q)
		busy = true
		if q == stop {
			break
		}
	}
	if busy {
		e.lookForOwners()
	}
	if len(e.dirty) > 0 {
		e.flushDirty()
	}
	if len(e.timed)+len(e.parked) > 0 {
		busy = e.expire() || busy
	}
	return busy || e.first != nil
}

// enqueue puts a queue pair behind all others that have something to do.
func (e *Engine) enqueue(q *qp) {
	if q.queued {
		return
	}
	q.queued = true
	if e.last == nil {
		e.first = q
	} else {
		e.last.nextRun = q
	}
	e.last = q
}

func (e *Engine) unqueue() {
	q := e.first
	e.first, q.nextRun, q.queued = q.nextRun, nil, false
	if e.first == nil {
		e.last = nil
	}
}

// lookForOwners continues queues whose next request was handed over by a write.
func (e *Engine) lookForOwners() {
	kept := e.unowned[:0]
	for _, q := range e.unowned {
		if q.state < fabric.Failed && !q.shared.Send.Owned(q.sendSlot(q.next)) {
			kept = append(kept, q)
			continue
		}
		q.unowned = false
		e.enqueue(q)
	}
	clear(e.unowned[len(kept):])
	e.unowned = kept
}

// Done is closed when the engine has ended.
func (e *Engine) Done() <-chan struct{} { return e.done }
