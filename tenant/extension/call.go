package extension

import (
	"errors"
	"fmt"
	"sync"
)

// ErrAbandoned is a trial that was given up: it did not end within its fuel, or the store could not answer without
// waiting. Nothing was applied and no line was logged; call the function again, with time.
var ErrAbandoned = errors.New("the function takes longer than a first attempt may: call it again with its whole budget")

// leases are for calls that come alone.
var leases = sync.Pool{New: func() any { return new(Lease) }}

// Call runs a function to its end. Errors are a *CallError, ErrAbandoned, ErrBusy or ErrClosed, or name a wrong
// invocation.
func (p *Pool) Call(inv *Invocation) (res Result, err error) {
	l := leases.Get().(*Lease)
	err = l.Call(p, inv, &res)
	aloud(inv.Turns, l.End) // It takes locks of those who call where they serve.
	leases.Put(l)
	return res, err
}

// prepare makes everything ready for the function that was chosen, with arguments of size bytes.
func (in *instance) prepare(inv *Invocation, size int) {
	t := in.task
	t.begin(in, inv, &in.pool.limits)
	t.argsLen = size
	if in.area != 0 {
		t.place()
		if in.pool.module.hasFirst {
			t.placeFirst()
		}
	}
	in.arm(in.which)
}

// finish is what is left to do when the guest has ended, with err. It tells whether the instance can be used again.
func (in *instance) finish(err error, res *Result) (usable bool, _ error) {
	t := in.task
	if err != nil {
		err = in.why(err)
	} else if in.area != 0 {
		err = t.fetch()
	}
	if t.placed {
		t.takeBackFirst()
	}
	if err == nil {
		err = t.conclude(uint32(t.stack[0]))
	}
	t.result(res, err)
	in.calls++
	in.burnt += uint64(res.Fuel)
	in.hostCalls += uint64(res.HostCalls)
	usable = true
	if err != nil {
		usable = in.failed(err)
	} else if t.lines != nil {
		t.tell()
	}
	if usable && in.stackGrew() {
		in.settleStack()
	}
	t.end()
	return usable, err
}

// failed counts a failure, and tells whether the instance can go on: the guest ended by itself, or could begin anew.
func (in *instance) failed(err error) bool {
	in.failures++
	if err == ErrAbandoned {
		in.abandoned++
		return in.renew()
	}
	in.task.tell()
	var e *CallError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Kind {
	case Returned, NotCommitted:
		return true
	case OutOfStack, Broken:
		return false // Its stack has grown, or nobody knows what it is like.
	}
	// To make another takes many times as long, and whoever fails on purpose would have that done for nothing.
	renewed := false
	aloud(in.task.inv.Turns, func() { renewed = in.renew() })
	return renewed
}

// renew has an instance begin anew whose guest was ended in the middle of a call.
func (in *instance) renew() bool {
	if !in.reset() {
		return false
	}
	in.resets++
	return true
}

// conclude applies the writes of a guest that has returned.
func (t *Task) conclude(code uint32) error {
	if code == 0 && len(t.changes.Writes) == 0 && len(t.changes.Reads) < 2 && t.moreLen == 0 {
		return nil
	}
	name := t.inv.Function
	if code != 0 {
		return &CallError{Kind: Returned, Function: name, Code: int32(code), Message: fmt.Sprintf("returned error code %d", int32(code))}
	}
	if e := t.gather(); e != nil {
		return e
	}
	if len(t.changes.Writes) == 0 && len(t.changes.Reads) < 2 {
		return nil
	}
	t.changes.Response = t.resp[t.respStart:]
	if err := t.inv.Store.Commit(&t.changes); err != nil {
		return &CallError{Kind: NotCommitted, Function: name, Message: "was not applied: " + err.Error(), Err: err}
	}
	return nil
}

func (t *Task) result(res *Result, err error) {
	res.HostCalls, res.Slices, res.LogsLost = t.hostCalls, t.slices, t.lost
	res.Reads, res.Writes = len(t.changes.Reads), len(t.changes.Writes)
	res.Response = nil
	start := t.limits.Fuel
	if t.inv.Fuel > 0 {
		start = t.inv.Fuel
	}
	// What a guest that was ended held in registers is not known: it is charged its whole slice.
	res.Fuel = start - t.budget
	if err == nil {
		res.Fuel -= max(int64(t.stack[1]), 0)
		res.Response = t.resp
	}
}
