package group

import (
	"context"
	"math/bits"
	"time"
)

// Map is a set of replicas: bit i is the i-th of the chain.
type Map uint8

// Has tells whether replica i is in the map.
func (m Map) Has(i int) bool { return m>>i&1 == 1 }

// Len is how many replicas are in the map.
func (m Map) Len() int { return bits.OnesCount8(uint8(m)) }

// First is the map of the first n replicas.
func First(n int) Map { return Map(1<<n - 1) }

// Result is what a gCAS found: the result map.
type Result struct {
	Executed Map                 // the execute map
	Found    [MaxReplicas]uint64 // the value before, of each replica in it
}

// Swapped tells which replicas found old, and hence have the new value.
func (r Result) Swapped(old uint64) Map {
	var m Map
	for i, found := range r.Found {
		if r.Executed.Has(i) && found == old {
			m |= 1 << i
		}
	}
	return m
}

// Pending is an operation in flight.
type Pending struct {
	g      *Group
	since  time.Time // of its issue
	done   chan struct{}
	heard  bool // somebody listens; guarded by the group's mu
	result Result
	err    error
}

// Done is closed when the operation has ended. Who only waits for that is better
// served by Wait, which need not be woken.
func (p *Pending) Done() <-chan struct{} {
	p.g.hear(p)
	return p.done
}

// Wait returns when the operation has ended, or ctx is over; then it goes on.
func (p *Pending) Wait(ctx context.Context) (Result, error) {
	if err := p.g.await(ctx, p.done); err != nil {
		return Result{}, err
	}
	return p.result, p.err
}
