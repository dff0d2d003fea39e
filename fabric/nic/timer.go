package nic

import (
	"slices"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// setDeadline makes the loop look at a stalled queue pair again after d; negative is never.
func (e *Engine) setDeadline(q *qp, d time.Duration) {
	if d < 0 {
		return
	}
	q.deadline = time.Now().Add(d)
	if !q.timed {
		q.timed = true
		e.timed = append(e.timed, q)
	}
}

func (e *Engine) untime(q *qp) {
	if q.timed {
		q.timed = false
		drop(&e.timed, q)
	}
}

// expire continues queue pairs whose deadline has passed. They find it themselves.
func (e *Engine) expire() (any bool) {
	now := time.Now()
	for _, q := range e.timed {
		if now.Before(q.deadline) || q.queued {
			continue
		}
		any = true
		e.enqueue(q)
	}
	for _, c := range slices.Clone(e.parked) {
		if c.parked && c.rnrWait >= 0 && !now.Before(c.deadline) {
			any = true
			c.recvPosted(e)
		}
	}
	return any
}

// untilDeadline is how long the loop may sleep, in milliseconds, rounded up.
func (e *Engine) untilDeadline() int {
	var soonest time.Time
	earlier := func(t time.Time) {
		if soonest.IsZero() || t.Before(soonest) {
			soonest = t
		}
	}
	for _, q := range e.timed {
		earlier(q.deadline)
	}
	for _, c := range e.parked {
		if c.rnrWait >= 0 {
			earlier(c.deadline)
		}
	}
	if soonest.IsZero() {
		return -1
	}
	return int(max(0, time.Until(soonest)+time.Millisecond-1) / time.Millisecond)
}

// flushTarget ends a FLUSH. All before it is in memory already; what has to
// reach a medium is synced by a helper, for a disk must not hold up the loop.
func (e *Engine) flushTarget(q *qp) (outcome, fabric.Status) {
	n := uint64(q.cur.Local[0].Bytes)
	if _, status := e.remote(q.peer, q.cur.Remote, n, fabric.RemoteWrite); status != fabric.OK {
		return finished, status
	}
	if !e.persists(q.cur.Flags, q.cur.Remote) {
		return finished, fabric.OK
	}
	q.holds = true
	e.persist(q.cur.Remote, n, func(status fabric.Status) {
		switch {
		case q.state != fabric.Ready || !q.holds:
		case status == fabric.OK:
			e.complete(q, status)
			q.shared.Send.Free(q.head)
			e.enqueue(q)
		default:
			e.fail(q, status)
		}
	})
	return stalled, 0
}
