package library

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// desk is where installations are compiled, a few at a time. The next one is of the tenant that has had the desk for the least
// time of late: who brings what takes long to compile, again and again, waits for all others, and others wait for one of
// its modules at most, however many tenants do so.
type desk struct {
	mu      sync.Mutex
	free    int
	waiting []*visit
}

// visit is an installation that waits.
type visit struct {
	shelf *Shelf
	turn  chan struct{} // closed when it is
}

// effort is what a tenant has had compiled of late. The desk's lock guards it.
type effort struct {
	took time.Duration
	as   time.Time // of when
}

// forgetting is how long it takes until half of an effort is forgotten.
const forgetting = time.Minute

// now is what is left of it.
func (e *effort) now(t time.Time) time.Duration {
	return time.Duration(float64(e.took) * math.Exp2(-float64(t.Sub(e.as))/float64(forgetting)))
}

// enter waits for the shelf's turn. leave must follow if it returns nil.
func (d *desk) enter(ctx context.Context, s *Shelf) error {
	d.mu.Lock()
	if d.free > 0 {
		d.free--
		d.mu.Unlock()
		return nil
	}
	v := &visit{s, make(chan struct{})}
	d.waiting = append(d.waiting, v)
	d.mu.Unlock()
	select {
	case <-v.turn:
		return nil
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.waiting, v); i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
	} else {
		d.pass(time.Now()) // It was its turn at the same moment.
	}
	if cause := context.Cause(ctx); errors.Is(cause, errClosed) {
		return cause
	}
	return fmt.Errorf("too much is installed at the same time: try again (%w)", ctx.Err())
}

// leave notes how long the shelf had the desk, and lets the next one have it.
func (d *desk) leave(s *Shelf, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	s.effort = effort{s.effort.now(now) + took, now}
	d.pass(now)
}

// pass gives the desk to whoever is next: of those who have had least, the one that has waited for longest.
func (d *desk) pass(now time.Time) {
	if len(d.waiting) == 0 {
		d.free++
		return
	}
	next := 0
	for i := range d.waiting {
		if d.waiting[i].shelf.effort.now(now) < d.waiting[next].shelf.effort.now(now) {
			next = i
		}
	}
	close(d.waiting[next].turn)
	d.waiting = slices.Delete(d.waiting, next, next+1)
}
