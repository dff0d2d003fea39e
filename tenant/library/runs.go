package library

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrKilled is what ends a call that FUNCTION KILL was sent for.
var ErrKilled = errors.New("it was killed by FUNCTION KILL")

// runs are a tenant's calls that take longer.
type runs struct {
	mu  sync.Mutex
	all map[*Run]struct{}
}

// Run is a call that may take longer, so that it can be shown and killed.
type Run struct {
	Function *Function
	Began    time.Time
	killed   atomic.Bool
}

// Enter notes that a call begins that may take longer. Leave must follow. Short calls need not be noted.
func (f *Function) Enter() *Run {
	r := &Run{Function: f, Began: time.Now()}
	rs := &f.edition.shelf.runs
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.all == nil {
		rs.all = map[*Run]struct{}{}
	}
	rs.all[r] = struct{}{}
	return r
}

// Killed is ErrKilled once somebody wants the call to end; ask whenever it gives way.
func (r *Run) Killed() error {
	if r.killed.Load() {
		return ErrKilled
	}
	return nil
}

// Leave takes Enter back.
func (r *Run) Leave() {
	rs := &r.Function.edition.shelf.runs
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.all, r)
}

// Kill ends the tenant's calls on this node that take longer, and returns how many there were.
func (s *Shelf) Kill() int {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	for r := range s.runs.all {
		r.killed.Store(true)
	}
	return len(s.runs.all)
}

// Oldest is the call that runs for longest; nil: none does.
func (s *Shelf) Oldest() *Run {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	var oldest *Run
	for r := range s.runs.all {
		if oldest == nil || r.Began.Before(oldest.Began) {
			oldest = r
		}
	}
	return oldest
}
