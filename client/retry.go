package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ostrodb/ostro/wire"
)

// submit gives a call to the session of its owner.
func (c *Client) submit(ctx context.Context, cl *call, wait bool) error {
	for {
		r := c.routes.Load()
		if cl.piece != nil && !cl.pinned {
			if split, err := c.resplit(r, cl); split || err != nil {
				return err
			}
		}
		address, ok := r.address(cl.place)
		if !ok {
			c.wantMap()
			c.again(cl, errors.New("nobody owns the key yet"))
			return nil
		}
		s, err := cl.w.session(address)
		if err != nil {
			return err
		}
		if err := s.enqueue(ctx, cl, r, wait); err != errAgain {
			return err
		}
		cl.w.forgetEnded(s)
	}
}

// forgetEnded drops a session that has ended and was not dropped yet.
func (w *worker) forgetEnded(s *session) {
	s.mu.Lock()
	over := s.over != nil
	s.mu.Unlock()
	if over {
		w.forget(s)
	}
}

// answered completes a call, or tries it again if the server asks for that.
func (c *Client) answered(s *session, cl *call, r *wire.Result) {
	switch r.Status {
	case wire.Moved:
		s.mu.Lock()
		s.wantMap = true
		s.kick()
		s.mu.Unlock()
		c.again(cl, errMoved)
	case wire.Busy:
		c.again(cl, errBusy)
	default:
		cl.end(r, errorOf(r))
	}
}

// again tries a call another time: at once the first time, later and later then. A call that
// must not be tried any more fails with what can be said of it.
func (c *Client) again(cl *call, cause error) {
	cl.attempts++
	cl.cause = cause
	if err := c.hopeless(cl); err != nil {
		cl.end(nil, err)
		return
	}
	c.stats.retries.Add(1)
	c.later(cl, backoff(cl.attempts))
}

// backoff is 0 for the first attempt that follows, then 5 ms and doubling up to 320.
func backoff(attempts int) time.Duration {
	if attempts <= 1 {
		return 0
	}
	d := 5 * time.Millisecond << min(attempts-2, 6)
	return d/2 + rand.N(d)
}

// hopeless tells why a call must not be tried again; nil if it may be.
func (c *Client) hopeless(cl *call) error {
	age := c.age(cl)
	switch {
	case c.ctx.Err() != nil:
		return ErrClosed
	case cl.pinned:
		return errMoved
	case cl.lost && cl.op.Writes() && !cl.once():
		return fmt.Errorf("%w, and it has no identity to be tried again with (%w)", ErrUnknownOutcome, cl.cause)
	case permanent(cl.cause) && !cl.lost:
		return cl.cause
	case cl.lost && cl.op.Writes():
		return c.overdue(cl)
	case age > c.patience(cl):
		return fmt.Errorf("%w: tried for %v, last: %w", ErrUnavailable, age.Round(time.Millisecond), cl.cause)
	}
	return nil
}

// overdue tells why a write that may have been executed must not be sent again; nil if it may be. It is asked whenever
// such a write is about to be: much may have happened to the process, or the machine, since it was decided.
func (c *Client) overdue(cl *call) error {
	if !cl.lost || !cl.op.Writes() {
		return nil
	}
	age := c.age(cl)
	if age <= c.patience(cl) {
		return nil
	}
	return fmt.Errorf("%w: tried for %v, last: %w", ErrUnknownOutcome, age.Round(time.Millisecond), cl.cause)
}

// age is for how long a call was tried. What counts for servers is when it was sent, by a clock that goes on while the
// machine sleeps.
func (c *Client) age(cl *call) time.Duration {
	age := time.Since(cl.began)
	if cl.sent != 0 {
		age = max(age, c.opts.now()-cl.sent)
	}
	return age
}

// patience is for how long a call may be tried. A write is never tried when servers
// may have forgotten its first attempt.
func (c *Client) patience(cl *call) time.Duration {
	if cl.once() {
		return c.patienceOnce()
	}
	return c.opts.Retry
}

func (c *Client) patienceOnce() time.Duration {
	return min(c.opts.Retry, time.Duration(c.lease.Load())*time.Millisecond/2)
}

// elsewhere lets calls find their owners again, or their end.
func (c *Client) elsewhere(calls []*call) {
	for _, cl := range calls {
		c.later(cl, 0)
	}
}

// later puts a call on the list of those to be tried again.
func (c *Client) later(cl *call, in time.Duration) {
	cl.due = time.Now().Add(in)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		cl.end(nil, ErrClosed)
		return
	}
	c.waiting = append(c.waiting, cl)
	c.mu.Unlock()
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}

// retrier tries calls again when they are due.
func (c *Client) retrier() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-c.nudge:
		case <-timer.C:
		case <-c.ctx.Done():
			return
		}
		due, next := c.takeDue(time.Now())
		for _, cl := range due {
			err := c.overdue(cl)
			if err == nil {
				err = c.submit(c.ctx, cl, true)
			}
			if err != nil {
				cl.end(nil, err)
			}
		}
		timer.Reset(next)
	}
}

// takeDue takes the calls that are due, and tells when the next is.
func (c *Client) takeDue(now time.Time) (due []*call, next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = time.Hour
	left := c.waiting[:0]
	for _, cl := range c.waiting {
		if in := cl.due.Sub(now); in > 0 {
			next = min(next, in)
			left = append(left, cl)
		} else {
			due = append(due, cl)
		}
	}
	clear(c.waiting[len(left):])
	c.waiting = left
	return due, next
}
