package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// raise gives all good replicas the next version, then the ledger.
func (p *Primary) raise(ctx context.Context) error {
	p.mu.Lock()
	p.books.raising++
	version := p.books.raising
	p.forfeitUnclosed()
	lists := p.raisable()
	p.mu.Unlock()
	errs := make([]error, len(lists))
	nodes := slices.Sorted(maps.Keys(lists))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = p.raiseAt(ctx, n, version) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("raise the replica version to %d: %w", version, err)
	}
	return p.raiseLedger(ctx, version)
}

// forfeitUnclosed leaves out replicas that wait to be closed at nodes that are out of reach.
// They are whole, but will be stale for those nodes. The caller holds mu.
func (p *Primary) forfeitUnclosed() {
	for _, c := range p.books.closed {
		for n := range c.unclosed {
			if l := p.books.links[n]; l == nil || !l.good() {
				c.leave(n)
				c.partly = append(c.partly, n)
			}
		}
	}
}

// raisable lists, for each node, its replicas that count and have a version. The caller
// holds mu.
func (p *Primary) raisable() map[view.NodeID][]record.SegmentID {
	lists := map[view.NodeID][]record.SegmentID{}
	for _, g := range *p.open.Load() {
		for _, s := range *g.copies.Load() {
			if s.good() {
				lists[s.node] = append(lists[s.node], g.id)
			}
		}
	}
	for _, c := range p.books.closed {
		for n := range c.unclosed {
			lists[n] = append(lists[n], c.id)
		}
	}
	return lists
}

// raiseAt raises what a node has. A node that does not answer is out of reach: its
// replicas would become stale.
func (p *Primary) raiseAt(ctx context.Context, node view.NodeID, version uint64) error {
	order := p.keeper.order(node)
	order.Lock()
	defer order.Unlock()
	p.mu.Lock()
	list := p.raisable()[node]
	l := p.books.links[node]
	p.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	_, err := p.call(ctx, node, MethodRaise, RaiseRequest{Log: p.source.LogID, Version: version, Segments: list}, nil, nil)
	if err != nil {
		if l != nil && !errors.Is(err, ErrNotFound) {
			p.mu.Lock()
			l.unforgiven = p.o.Now().Add(maxPause)
			p.mu.Unlock()
			l.silent.Store(true) // Writes go on there until it is replaced.
		}
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range list {
		if g := (*p.open.Load())[id]; g != nil {
			for _, s := range *g.copies.Load() {
				if s.node == node && s.good() {
					s.version, s.fresh = version, false
				}
			}
		}
	}
	return nil
}

// raiseLedger makes the version the cluster's.
func (p *Primary) raiseLedger(ctx context.Context, version uint64) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	got, err := p.o.Ledger.RaiseVersion(ctx)
	for err == nil && got < version { // Calls that failed have raised some replicas further.
		got, err = p.o.Ledger.RaiseVersion(ctx)
	}
	if err != nil {
		return fmt.Errorf("raise the replica version: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if got > version {
		p.books.raising = max(p.books.raising, got)
		return fmt.Errorf("the ledger has the replica version %d already, and the replicas have %d", got, version)
	}
	p.books.version = got
	return nil
}
