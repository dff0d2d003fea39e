package sched

import (
	"sync/atomic"
	"time"
)

// A long turn has a thread of its own, of low priority, from its first turn as a long one to its end: a thread's
// priority cannot be raised again. A tenant has few of these, so that a crowd of endless calls leaves some to others,
// and those of it that wait for one cost nobody anything.

// hush gives a turn of the tenant the right to a thread of low priority, unless there are enough. Like begin, it
// never counts one too many, unless the scheduler is closed: then all are to end, on whatever thread.
func (h *Share) hush() bool {
	most := h.s.opts.QuietTurns
	if h.inDebt() {
		most = 1 // The sooner one of them may end, and pay.
	}
	if !h.s.take(&h.quiet, most) {
		return false
	}
	if !h.s.take(&h.s.quiet, h.s.opts.QuietThreads) {
		h.quiet.Add(-1)
		return false
	}
	return true
}

func (s *Scheduler) take(n *atomic.Int64, most int) bool {
	for {
		was := n.Load()
		if was >= int64(most) && !s.closed.Load() {
			return false
		}
		if n.CompareAndSwap(was, was+1) {
			return true
		}
	}
}

// unhush takes a hush back, and lets turns go on that waited for it.
func (h *Share) unhush() {
	h.quiet.Add(-1)
	h.s.quiet.Add(-1)
	h.unhold()
}

const (
	// quietLook is how often a tenant that waits for the threads of others looks whether there is one.
	quietLook = 20 * time.Millisecond
	// quietLookOwn is the same of one that waits for its own, which tell when they end, unless two looked at the same time.
	quietLookOwn = 200 * time.Millisecond
)

// quietPause is how long turns without a thread wait before they look by themselves.
func (s *Scheduler) quietPause() int64 {
	if s.quiet.Load() >= int64(s.opts.QuietThreads) {
		return int64(quietLook)
	}
	return int64(quietLookOwn)
}

// A tenant whose turns were long of late has less time for the next ones before they make way for everybody. It gets that
// time back by turns that end within what a short one has.

// distrust notes that a turn was a long one.
func (h *Share) distrust() {
	least := min(h.s.opts.Quantum, h.s.opts.LongAfter)
	h.patience.Store(max(h.patience.Load()/2, int64(least)))
}

// trustPart is what of the time of a short turn is added to the patience with its tenant.
const trustPart = 4

// trust notes that a turn ended after so many nanoseconds as a short one does. Of two at the same time one may be lost.
func (h *Share) trust(used int64) {
	if was, most := h.patience.Load(), int64(h.s.opts.LongAfter); was < most {
		h.patience.Store(min(was+used/trustPart+1, most))
	}
}
