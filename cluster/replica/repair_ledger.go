package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/cluster/view"
)

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
		return fmt.Errorf("no other node lives to keep a copy: %d are known", m.Known-1)
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
	if err := p.o.Ledger.SetCopies(ctx, copies); err != nil {
		return fmt.Errorf("note that each segment has %d copies: %w", copies, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.books.copies = copies
	return nil
}

// restore tells the ledger that all segments have more copies, once they have.
func (p *Primary) restore(ctx context.Context, m Membership) error {
	p.mu.Lock()
	copies := p.books.copies
	target := min(p.leastCopies(), p.books.reachable(p.o.Self, m.Living, p.o.Now()))
	// First here, so that what is opened meanwhile has as many, too.
	p.books.copies = max(copies, target)
	p.mu.Unlock()
	if target <= copies {
		return nil
	}
	stored, err := p.sendRoster(ctx, m.Living)
	if stored < target {
		err = errors.Join(fmt.Errorf("only %d of %d backups have stored the roster", stored, target), err)
	} else {
		err = p.setCopies(ctx, target)
	}
	if err != nil {
		p.mu.Lock()
		p.books.copies = copies
		p.mu.Unlock()
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

// exclude takes dead nodes from the ledger's backups once nothing needs them.
func (p *Primary) exclude(ctx context.Context, m Membership) error {
	p.mu.Lock()
	var gone []view.NodeID
	for n := range p.books.backups {
		if !has(m.Living, n) {
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
		if err := p.o.Ledger.Exclude(ctx, n); err != nil {
			return fmt.Errorf("note that node %s is no backup any more: %w", n, err)
		}
		p.mu.Lock()
		delete(p.books.backups, n)
		p.mu.Unlock()
		p.o.Log.Info("a backup that is gone is no longer needed", "node", n)
	}
	return nil
}
