package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// turn is a lock that one need not wait for longer than one has time: who has it may wait for etcd.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) end() { <-t }

func errAlone(m Membership) error {
	return fmt.Errorf("no other node lives to keep a copy: %d are known", m.Known-1)
}

// degrade tells the ledger that there will be fewer copies, before that is so.
func (p *Primary) degrade(ctx context.Context, m Membership) error {
	p.mu.Lock()
	usable, copies := p.books.reachable(p.o.Self, m.Living, p.o.Now()), p.books.copies
	p.mu.Unlock()
	target := min(p.o.Copies, usable)
	switch {
	case target >= copies:
		return nil
	case target == 0 && m.Known > 1:
		return errAlone(m)
	}
	if err := p.setCopies(ctx, target); err != nil {
		return err
	}
	p.o.Log.Warn("too few nodes live: each segment has fewer copies from now on", "copies", target, "wanted", p.o.Copies)
	return nil
}

func (p *Primary) setCopies(ctx context.Context, copies int) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	err := p.o.Ledger.SetCopies(ctx, copies)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.books.unsure = err != nil; p.books.unsure {
		return fmt.Errorf("note that each segment has %d copies: %w", copies, err)
	}
	p.books.copies = copies
	return nil
}

// restore tells the ledger that all segments have more copies, once they have, or again if it may not have heard.
func (p *Primary) restore(ctx context.Context, m Membership) error {
	p.mu.Lock()
	copies, unsure := p.books.copies, p.books.unsure
	target := min(p.leastCopies(), p.books.reachable(p.o.Self, m.Living, p.o.Now()))
	// First here, so that what is opened meanwhile has as many, too.
	p.books.copies = max(copies, target)
	p.mu.Unlock()
	if target < copies || target == copies && !unsure {
		return nil
	}
	if stored, err := p.sendRoster(ctx, m.Living); stored < target {
		p.mu.Lock()
		p.books.copies = copies
		p.mu.Unlock()
		return errors.Join(fmt.Errorf("only %d of %d backups have stored the roster", stored, target), err)
	}
	// From here on the ledger may say so, whether its answer comes or not.
	if err := p.setCopies(ctx, target); err != nil {
		return err
	}
	p.o.Log.Info("each segment has more copies again", "copies", target, "wanted", p.o.Copies)
	return nil
}

// leastCopies is how many copies each segment has. The caller holds mu.
func (p *Primary) leastCopies() int {
	least := p.o.Copies
	for _, g := range *p.open.Load() {
		least = min(least, g.number((*stream).counts))
	}
	for _, c := range p.books.closed {
		if c.adopting {
			continue // It is no part of the log yet, and will have as many as are wanted then.
		}
		least = min(least, len(c.holders))
	}
	return least
}

// exclude takes dead nodes and ghosts from the ledger's backups once nothing needs them.
func (p *Primary) exclude(ctx context.Context, m Membership) error {
	gone, err := p.meetGhosts(ctx, m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	for n := range p.books.backups {
		if !has(m.Living, n) && !slices.Contains(gone, n) {
			gone = append(gone, n)
		}
	}
	enough := p.leastCopies() >= p.books.copies
	p.mu.Unlock()
	if len(gone) == 0 || !enough {
		return nil
	}
	// Some of those who stored the newest roster may be among the dead.
	if err := p.spreadRoster(ctx, m.Living); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	for _, n := range gone {
		if err := p.excludeOne(ctx, n, m); err != nil {
			return fmt.Errorf("note that node %s is no backup any more: %w", n, err)
		}
	}
	return nil
}

// excludeOne takes a node from the backups, first here: who is just giving it a replica finds
// that it does not count.
func (p *Primary) excludeOne(ctx context.Context, n view.NodeID, m Membership) error {
	if err := p.ledger.take(ctx); err != nil {
		return err
	}
	defer p.ledger.end()
	_, ghost := m.Ghosts[n]
	p.mu.Lock()
	if !ghost && p.needs(n) {
		p.mu.Unlock()
		return errors.New("it has just got a copy of a segment")
	}
	delete(p.books.backups, n)
	p.mu.Unlock()
	if err := p.o.Ledger.Exclude(ctx, n); err != nil {
		p.mu.Lock()
		p.books.backups[n] = false // Perhaps it is one still, perhaps not.
		p.mu.Unlock()
		return err
	}
	if ghost {
		p.mu.Lock()
		p.books.ghosts[n] = true
		p.mu.Unlock()
	}
	p.o.Log.Info("a backup that is gone is no longer needed", "node", n)
	return nil
}

// needs tells whether copies that count are at a node. The caller holds mu.
func (p *Primary) needs(n view.NodeID) bool {
	for _, c := range p.books.closed {
		if slices.Contains(c.holders, n) {
			return true
		}
	}
	for _, g := range *p.open.Load() {
		if slices.ContainsFunc(*g.copies.Load(), func(s *stream) bool { return s.node == n && s.counts() }) {
			return true
		}
	}
	return false
}

// meetGhosts returns ghosts that are in the ledger. The books may count replicas of a node that has lost them and came back
// too soon for its absence to be noticed: it is asked first what it has.
func (p *Primary) meetGhosts(ctx context.Context, m Membership) (ghosts []view.NodeID, err error) {
	for ghost, node := range m.Ghosts {
		p.mu.Lock()
		excluded, met := p.books.ghosts[ghost]
		if !met {
			p.doubt(node)
		}
		p.mu.Unlock()
		if excluded {
			continue // The members do not tell yet.
		}
		if !met {
			var left SurveyAnswer
			if has(m.Living, node) {
				if left, err = p.survey(ctx, node); err != nil {
					return nil, fmt.Errorf("ask node %s, which has lost replicas, what it has left: %w", node, err)
				}
			}
			p.miss(node, left.Replicas)
			p.copier.wake()
		}
		p.mu.Lock()
		p.books.ghosts[ghost] = false
		p.mu.Unlock()
		ghosts = append(ghosts, ghost)
	}
	return ghosts, nil
}

// miss breaks with a node that lacks replicas of open segments: where nothing is written, no queue pair tells.
func (p *Primary) miss(node view.NodeID, left []ReplicaInfo) {
	p.mu.Lock()
	l, lacks := p.books.links[node], false
	for id, g := range *p.open.Load() {
		there := slices.ContainsFunc(left, func(r ReplicaInfo) bool { return r.Segment == id })
		lacks = lacks || !there && slices.Contains(g.holders(), node)
	}
	p.mu.Unlock()
	if l != nil && lacks {
		l.fail(fmt.Errorf("node %s has lost replicas with its disk", node))
	}
}

// doubt counts no replica of a closed segment at a node until it was surveyed. The caller holds mu.
func (p *Primary) doubt(node view.NodeID) {
	for _, c := range p.books.closed {
		if slices.Contains(c.holders, node) {
			c.leave(node)
			c.partly = append(c.partly, node)
		}
	}
}
