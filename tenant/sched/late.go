package sched

import (
	"fmt"
	"time"
)

// Late is a turn that was not over in time although it ran for little of it. It is an ErrLate.
type Late struct {
	Tenant    string
	Ran, Most time.Duration
	Owes      time.Duration // the tenant, for calls that came to nothing
	Throttled bool          // the tenant has used up its part of the CPU
}

func (e *Late) Error() string {
	return fmt.Sprintf("it took longer than a call may, %v, though it ran for only %v of that: %s", e.Most, e.Ran, e.advice())
}

func (e *Late) advice() string {
	switch {
	case e.Owes > 0:
		return fmt.Sprintf("tenant %s owes %v of CPU time for calls that came to nothing, so its long calls wait for turns: end those that never end, and call again later", e.Tenant, e.Owes)
	case e.Throttled:
		return fmt.Sprintf("tenant %s has used up its CPU time: wait, or have its limit of function-cpu raised", e.Tenant)
	}
	return "others had their turns meanwhile: call again later, or have fewer calls at a time"
}

// Unwrap makes it an ErrLate.
func (e *Late) Unwrap() error { return ErrLate }

// late says why the turn, which is the caller's, is not over in time.
func (t *Turn) late(now int64) error {
	most := t.s.opts.Deadline
	ran := time.Duration(t.used)
	if ran >= most/2 {
		return ErrLate
	}
	return &Late{
		Tenant: t.share.name, Ran: ran.Round(time.Microsecond), Most: most,
		Owes: time.Duration(t.share.debt.Load()).Round(time.Millisecond), Throttled: t.share.pause(now) > 0,
	}
}
