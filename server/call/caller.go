package call

import (
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/library"
)

// Errors of calls.
var (
	// ErrNotFound is a call of a function that is not installed.
	ErrNotFound = errors.New("there is no such function")
	// ErrConflict is a call that met changes of what it had read each time it ran.
	ErrConflict = fmt.Errorf("what it reads was changed by others each of the %d times it ran: try again, or have it read less", tries)
	errForeign  = errors.New("a key holds what functions cannot read")
)

// Verdict is how far a call has come.
type Verdict uint8

// Verdicts.
const (
	// Done: Response or Err is the answer.
	Done Verdict = iota
	// Cold: the session has to fetch something; then Call is to be called again.
	Cold
	// Later: the call is to be given to Host.Start.
	Later
	// Ready: Enter and Leave come next. Only Prepare and Leave say so.
	Ready
)

// Caller runs calls for one worker of a door, on its session. It is the worker's.
type Caller struct {
	// Response is valid until the next Call, or the end of the session's round.
	Response []byte
	Err      error

	host *Host
	sess *store.Session
	inv  extension.Invocation
	near near
	buf  []byte
	run  run
	res  extension.Result // of the call that ran last
	left int              // trials that the call may still have
	used int64            // fuel of all trials so far, and callFuel for each
}

// NewCaller makes a caller.
func (h *Host) NewCaller(s *store.Session) *Caller {
	c := &Caller{host: h, sess: s}
	c.near.sess = s
	c.inv = extension.Invocation{Store: &c.near, Ahead: &c.near, Placed: &c.near, Prompt: &c.near, Trial: true, Fuel: trialFuel}
	c.inv.Log = func(level int, line []byte) { c.run.fn.Log(level, line) }
	return c
}

const (
	trialFuel  = 60_000 // about 20 us
	callFuel   = 1_500  // what a call takes beside its own
	trialTries = 8
	keptBytes  = 64 << 10
)

// SliceFuel is how much calls of one client may use in a round of their worker's, about 200 us, before others have their turn.
const SliceFuel = 10 * trialFuel

// Used is the fuel of all calls that ran here so far, with what they take beside it.
func (c *Caller) Used() int64 { return c.used }

// Call runs a call, or goes on with it if t is not nil: what it returned before. It is called in a round of the
// caller's session.
func (c *Caller) Call(r *Request, t *Task) (Verdict, *Task) {
	alone := !c.run.open
	if alone {
		c.Begin()
	}
	v, t := c.Prepare(r, t)
	for v == Ready {
		v, t = c.Leave(r, t, c.Enter())
	}
	if alone {
		c.End()
	}
	return v, t
}

// Prepare is Call as far as the guest, for who has many calls: it enters the guest itself, by Enter, as often as Prepare
// or Leave say Ready. See extension.Lease for why. It is called between Begin and End.
func (c *Caller) Prepare(r *Request, t *Task) (Verdict, *Task) {
	c.Response, c.Err = nil, nil
	if t != nil && t.ended {
		v, _ := c.conclude(r, t)
		if v == Done {
			c.host.leave(t.place)
		}
		return v, t
	}
	if r.Once {
		if verdict, over := c.repeated(r); over {
			return verdict, t
		}
	}
	f := c.find(r)
	if f == nil {
		return c.fail(ErrNotFound), t
	}
	if !r.Share.Inline() || !tryInline(f) {
		return c.later(t)
	}
	if c.run.pool == nil {
		return c.later(t)
	}
	c.near.req, c.near.ground = r, r.Ground
	c.inv.Function, c.inv.Keys, c.inv.Args, c.inv.ReadOnly = f.Name, r.Keys, r.Args, r.ReadOnly
	c.left = trialTries
	return c.try(r, t)
}

func (c *Caller) fail(err error) Verdict {
	c.Err = err
	return Done
}

// later makes the task for the scheduler.
func (c *Caller) later(t *Task) (Verdict, *Task) {
	if t == nil {
		t = &Task{host: c.host}
	}
	return Later, t
}

// repeated looks for the response of an earlier attempt.
func (c *Caller) repeated(r *Request) (v Verdict, over bool) {
	switch first, st := c.sess.Completed(r.Object, r.ID); st {
	case store.NotFound:
		return 0, false
	case store.OK:
		c.host.count.repeated.Add(1)
		c.Response = first
	case store.Cold:
		return Cold, true
	default:
		c.Err = &StoreError{st, c.sess.Err()}
	}
	return Done, true
}

// try makes a trial ready, in the round of the session.
func (c *Caller) try(r *Request, t *Task) (Verdict, *Task) {
	if c.left--; c.left < 0 {
		return c.later(t)
	}
	c.near.begin()
	c.inv.Into = c.buf[:0]
	if err := c.run.lease.Prepare(c.run.pool, &c.inv); err != nil {
		c.res = extension.Result{}
		return c.missed(r, t, err)
	}
	return Ready, t
}

// Enter runs the guest.
func (c *Caller) Enter() error { return c.run.lease.Enter() }

// Leave goes on with a call whose guest has ended; err is what Enter returned.
func (c *Caller) Leave(r *Request, t *Task, err error) (Verdict, *Task) {
	res := &c.res
	err = c.run.lease.Finish(err, res)
	if err == nil && r.Once && res.Writes == 0 {
		c.near.commit.begin(c.sess, r, r.Ground)
		err = c.near.commit.keep(res.Response)
	}
	if err != nil {
		return c.missed(r, t, err)
	}
	c.keep(res.Response)
	c.Response = res.Response
	if f := c.run.fn; f.Habit.Load() != 0 {
		f.Habit.Store(0)
	}
	c.did(res)
	return Done, t
}

// missed tells what is to become of a trial that has not ended well.
func (c *Caller) missed(r *Request, t *Task, err error) (Verdict, *Task) {
	res := &c.res
	switch {
	case errors.Is(err, errConflict):
		c.lost(res)
		c.host.count.conflicts.Add(1)
		return c.try(r, t)
	case err == extension.ErrAbandoned:
		c.lost(res)
		return c.abandoned(c.run.fn, t)
	case errors.Is(err, errCold):
		c.lost(res)
		return Cold, t
	case errors.Is(err, errRepeated):
		c.lost(res)
		c.host.count.repeated.Add(1)
		c.Response = c.near.commit.first
		return Done, t
	case errors.Is(err, extension.ErrBusy), errors.Is(err, extension.ErrClosed):
		c.miss()
		return c.later(t)
	}
	c.failed(res)
	return c.fail(err), t
}

// abandoned tells what is to become of a trial that did not suffice. The first time that something is cold it is
// fetched for another trial; who needs more than that waits in the scheduler.
func (c *Caller) abandoned(f *library.Function, t *Task) (Verdict, *Task) {
	c.host.count.abandoned.Add(1)
	switch c.near.missing {
	case cold:
		if t == nil || !t.fetched {
			_, t = c.later(t)
			t.fetched = true
			return Cold, t
		}
		c.sess.TakeFetch() // It will fetch for itself.
	case fault:
		return c.fail(c.sess.Err()), t
	case foreign:
		return c.fail(errForeign), t
	case nothing:
		long(f)
	}
	return c.later(t)
}

// keep keeps the buffer of a response for the next one.
func (c *Caller) keep(b []byte) {
	if cap(b) <= keptBytes {
		c.buf = b[:0]
	}
}

// conclude ends a call that the scheduler has run.
func (c *Caller) conclude(r *Request, t *Task) (Verdict, *Task) {
	c.sess.Await(t.data.ticket)
	if t.err != nil {
		if errors.Is(t.err, errConflict) {
			return c.conflicted(t)
		}
		again := errors.Is(t.err, library.ErrGone) || errors.Is(t.err, extension.ErrClosed) || errors.Is(t.err, errStrayed)
		if again && t.again() {
			return Later, t
		}
		return c.fail(t.err), t
	}
	if t.data.wrote || r.Once {
		switch err := c.commit(r, t); {
		case err == nil:
		case errors.Is(err, errConflict):
			return c.conflicted(t)
		case errors.Is(err, errCold):
			return Cold, t
		case errors.Is(err, errRepeated):
			c.host.count.repeated.Add(1)
			c.Response = c.near.commit.first
			return Done, t
		default:
			return c.fail(&extension.CallError{Kind: extension.NotCommitted, Function: string(t.req.Name), Message: "was not applied: " + err.Error(), Err: err}), t
		}
	}
	c.Response = t.response
	return Done, t
}

// conflicted has a call run again that has met changes of what it had read, unless it did so too often.
func (c *Caller) conflicted(t *Task) (Verdict, *Task) {
	c.host.count.conflicts.Add(1)
	if t.lost.IsZero() {
		t.lost = time.Now()
	}
	if t.again() {
		return Later, t
	}
	return c.fail(&extension.CallError{Kind: extension.NotCommitted, Function: string(t.req.Name), Message: "was not applied: " + ErrConflict.Error(), Err: ErrConflict}), t
}

// commit applies what a task has done, or keeps the response of one that has written nothing. Its time is the tenant's.
func (c *Caller) commit(r *Request, t *Task) error {
	began := time.Now()
	defer func() { r.Share.Charge(int64(time.Since(began))) }()
	m := &c.near.commit
	m.begin(c.sess, &t.req, r.Ground)
	if !t.data.wrote {
		return m.keep(t.response)
	}
	t.data.changes.Response = t.response
	return m.run(&t.data.changes)
}

// again counts an attempt; false: there were enough.
func (t *Task) again() bool {
	t.tries++
	t.ended = false
	return t.tries < tries
}
