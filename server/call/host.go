// Package call runs installed functions for the front doors, on the data of one tenant.
//
//	door: loop or worker                            scheduler
//	  │ Caller.Call ── trial on the worker's own store session: most calls end here
//	  │      └─ long, cold or arriving ── Host.Start ──▶ Task: runs from its start, where it may wait
//	  │                                                    │ reads on borrowed sessions, writes are kept
//	  └─ Caller.Call again, in a later round ◀── wake ─────┘ commits them on the worker's session
//
// Invariants:
//   - What a call writes is one transaction on the session of the worker that answers, in a round of its own
//     routing: it is released by the same ticket as every write, and refused where the keys are not owned any more.
//   - A transaction holds the versions of all that was read; if one has changed, the call runs again from its start.
//   - A call with an identity is looked up before it runs, and its response is a record of the same transaction.
//   - Between two moments at which it holds a session, a call holds nothing of the store.
package call

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// Standing is what a node may do with a place.
type Standing uint8

// Standings.
const (
	Here    Standing = iota // it is served
	Coming                  // it is this node's, and not all there yet
	Leaving                 // it is served as far as it is still there
	Away                    // it is another node's
)

// Ground tells what a node serves. It does not change.
type Ground interface {
	Standing(p record.Place) Standing
}

// Options are those of a Host.
type Options struct {
	// WaitLimit is how long a call waits for a place that is coming; 0: 30 s.
	WaitLimit time.Duration
	// Sessions is how many store sessions long calls share; 0: 8.
	Sessions int
}

// Host runs the calls of a front door that take longer.
type Host struct {
	st   *store.Store
	opts Options

	sessions chan *store.Session
	mu       sync.Mutex
	opened   int
	closing  atomic.Bool
	running  sync.WaitGroup
	lines    lines
	count    counters
}

type counters struct {
	inline, scheduled, conflicts, repeated, abandoned atomic.Int64
}

// Metrics count what a host has done.
type Metrics struct {
	Inline    int64 // calls that ended where they began
	Scheduled int64 // attempts that took longer
	Abandoned int64 // trials that did not suffice
	Conflicts int64 // attempts that met changes
	Repeated  int64 // calls whose first answer was given again
}

// NewHost makes a host for the calls on a store.
func NewHost(st *store.Store, o Options) *Host {
	if o.WaitLimit == 0 {
		o.WaitLimit = 30 * time.Second
	}
	if o.Sessions == 0 {
		o.Sessions = 8
	}
	return &Host{st: st, opts: o, sessions: make(chan *store.Session, o.Sessions)}
}

// Metrics are those of now.
func (h *Host) Metrics() Metrics {
	c := &h.count
	return Metrics{c.inline.Load(), c.scheduled.Load(), c.abandoned.Load(), c.conflicts.Load(), c.repeated.Load()}
}

// Close ends all calls that run, waits for them and gives the sessions back. No call may begin any more.
func (h *Host) Close() {
	h.closing.Store(true)
	h.disperse()
	h.running.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for ; h.opened > 0; h.opened-- {
		(<-h.sessions).Close()
	}
}

// borrow gives a session for a moment: nothing may be waited for before it is given back.
func (h *Host) borrow() (*store.Session, error) {
	select {
	case s := <-h.sessions:
		return s, nil
	default:
	}
	h.mu.Lock()
	if h.opened < h.opts.Sessions {
		defer h.mu.Unlock()
		s, err := h.st.NewSession()
		if err == nil {
			h.opened++
		}
		return s, err
	}
	h.mu.Unlock()
	return <-h.sessions, nil
}

func (h *Host) giveBack(s *store.Session) { h.sessions <- s }
