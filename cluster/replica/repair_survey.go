package replica

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// survey asks a backup what it has of this log, and counts its good copies of closed segments.
func (p *Primary) survey(ctx context.Context, node view.NodeID) (SurveyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	var a SurveyAnswer
	if _, err := p.call(ctx, node, MethodSurvey, SurveyRequest{Log: p.source.LogID}, nil, &a); err != nil {
		return a, err
	}
	if a.Retired {
		p.refused(ErrRetired)
		return a, ErrRetired
	}
	if len(a.Replicas) > 0 { // It is a backup, even if the ledger has forgotten.
		if err := p.addBackup(ctx, node); err != nil {
			return a, err
		}
	}
	return a, p.adopt(node, a.Replicas)
}

// adopt makes the books agree with what a node says it has of closed segments.
func (p *Primary) adopt(node view.NodeID, replicas []ReplicaInfo) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(replicas) > 0 {
		if err := p.stillBackup(node); err != nil {
			return err
		}
	}
	has := map[*closedSegment]bool{}
	for _, r := range replicas {
		c := p.books.closed[r.Segment]
		if c == nil {
			continue
		}
		if has[c] = c.matches(r); has[c] {
			c.join(node)
		} else if !slices.Contains(c.partly, node) {
			c.partly = append(c.partly, node)
		}
	}
	for _, c := range p.books.closed {
		if !has[c] && !c.unclosed[node] {
			c.leave(node)
		}
	}
	return nil
}

// matches tells whether a replica is a whole copy.
func (c *closedSegment) matches(r ReplicaInfo) bool {
	return r.State == StateClosed && !r.Corrupt && r.End == c.End && r.Batch == c.Batch && (!c.summed || r.Sum == c.Sum)
}

// surveyAll asks all nodes that live, and returns the highest roster among the answers.
func (p *Primary) surveyAll(ctx context.Context, living []Member) (Roster, error) {
	var mu sync.Mutex
	var highest Roster
	var failed error
	var all sync.WaitGroup
	for _, m := range living {
		if m.ID == p.o.Self {
			continue
		}
		all.Go(func() {
			a, err := p.survey(ctx, m.ID)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			if a.Roster.Number > highest.Number {
				highest = a.Roster
			}
		})
	}
	all.Wait()
	return highest, failed
}

// healthLoop asks backups for replicas that have gone bad.
func (p *Primary) healthLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.o.HealthEvery):
		}
		for _, m := range p.usable(p.o.Members().Living) {
			p.checkHealth(ctx, m.ID)
		}
	}
}

func (p *Primary) checkHealth(ctx context.Context, node view.NodeID) {
	if !p.isBackup(node) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	var a HealthAnswer
	if _, err := p.call(ctx, node, MethodHealth, HealthRequest{Log: p.source.LogID}, nil, &a); err != nil {
		return // Its lease tells whether it is alive.
	}
	for _, id := range a.Corrupt {
		p.mu.Lock()
		c, g := p.books.closed[id], (*p.open.Load())[id]
		p.mu.Unlock()
		if c != nil && p.holds(c, node) {
			p.o.Log.Warn("a replica has gone bad; another one is made", "node", node, "segment", id)
			p.forfeit(c, node)
		}
		if g != nil && g.condemn(node) {
			p.o.Log.Warn("a replica has gone bad; another one is made", "node", node, "segment", id)
			p.keeper.wake()
		}
	}
	if a.Replicas < p.held(node) {
		_, _ = p.survey(ctx, node)
		p.copier.wake()
	}
}

// probeLoop asks nodes that did not answer in time whether they are well again.
func (p *Primary) probeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(probeEvery):
		}
		for _, m := range p.unheard(p.o.Members().Living) {
			if p.probe(ctx, m.ID) == nil {
				p.welcome(m.ID)
				p.keeper.wake()
				p.copier.wake()
			}
		}
	}
}

const probeEvery = 500 * time.Millisecond

func (p *Primary) probe(ctx context.Context, node view.NodeID) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.OpenTimeout)
	defer cancel()
	_, err := p.call(ctx, node, MethodHealth, HealthRequest{Log: p.source.LogID}, nil, nil)
	return err
}

// condemn marks the copy at a node as bad, and tells whether there was one.
func (g *openSegment) condemn(node view.NodeID) bool {
	for _, s := range *g.copies.Load() {
		if s.node == node && !s.condemned.Swap(true) {
			return true
		}
	}
	return false
}

// held is how many closed segments a node is thought to hold.
func (p *Primary) held(node view.NodeID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, c := range p.books.closed {
		if slices.Contains(c.holders, node) {
			n++
		}
	}
	return n
}
