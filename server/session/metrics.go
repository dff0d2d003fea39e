package session

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/server/call"
)

// Metrics is what the front door knows of itself.
type Metrics struct {
	Sessions                  int64 // connections now and before
	Open                      int64 // connections now
	Batches, Stale            int64 // accepted, and rejected for their view
	Operations, Waited, Moved int64 // of them, those that waited alone, and those sent elsewhere
	Waiting                   int64 // operations that wait now
	Repeated                  int64 // answered from what was remembered
	Held                      int64 // rounds that waited to become durable
	Rounds                    int64
}

type counters struct {
	sessions, batches, stale, operations, waited, waiting, moved, repeated, held, rounds atomic.Int64
}

// Metrics takes stock.
func (s *Server) Metrics() Metrics {
	s.mu.Lock()
	open := len(s.conns)
	s.mu.Unlock()
	c := &s.count
	return Metrics{
		Sessions: c.sessions.Load(), Open: int64(open),
		Batches: c.batches.Load(), Stale: c.stale.Load(),
		Operations: c.operations.Load(), Waited: c.waited.Load(), Moved: c.moved.Load(),
		Waiting: c.waiting.Load(), Repeated: c.repeated.Load() + s.calls.Metrics().Repeated, Held: c.held.Load(), Rounds: c.rounds.Load(),
	}
}

// Calls tells what became of calls of functions.
func (s *Server) Calls() call.Metrics { return s.calls.Metrics() }
