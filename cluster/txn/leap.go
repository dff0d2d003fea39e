package txn

import (
	"context"

	"github.com/ostrodb/ostro/cluster/group"
)

// leap is how far heads go at the end of a recovery. Behind the end of the log there
// may be records that a loss of power kept without the ones before them. They were
// dropped, and must not count when the log comes to where they lie: so no position
// that they can have is used again. It is more than heads are ever apart otherwise.
func (l layout) leap() uint64 { return l.logBytes + wordBytes }

// leap moves the heads of current replicas, which have executed everything.
func (r *recovery) leap(ctx context.Context) error {
	var m group.Map
	for _, p := range r.current() {
		m |= p.one()
	}
	from := r.end
	r.end += r.layout.leap()
	return r.swapAll(ctx, "the head", headAt, from, r.end, m)
}

// land moves the heads that a recovery left behind which died while heads leapt.
func (r *recovery) land(ctx context.Context) error {
	var ahead *replica
	for _, p := range r.current() {
		if ahead == nil || p.control.head > ahead.control.head {
			ahead = p
		}
	}
	for _, p := range r.current() {
		to := ahead.control.head
		if len(p.log) > 0 || len(ahead.log) > 0 || p.control.head+r.layout.leap() != to {
			continue
		}
		if err := r.swapAll(ctx, "the head", headAt, p.control.head, to, p.one()); err != nil {
			return err
		}
		p.control.head = to
	}
	return nil
}
