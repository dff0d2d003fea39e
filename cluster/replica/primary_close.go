package replica

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// closer closes replicas of segments that are complete everywhere. Who found the
// last completion adds the segment and goes on.
type closer struct {
	mu       sync.Mutex
	finished []*openSegment
	news     chan struct{}
}

func (c *closer) begin() { c.news = make(chan struct{}, 1) }

func (c *closer) add(g *openSegment) {
	c.mu.Lock()
	c.finished = append(c.finished, g)
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *closer) take() []*openSegment {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.finished
	c.finished = nil
	return all
}

func (p *Primary) closeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.closer.news:
		}
		for _, g := range p.closer.take() {
			p.closeSegment(g)
		}
	}
}

// closeSegment makes a finished segment a closed one, and tells its backups.
func (p *Primary) closeSegment(g *openSegment) {
	g.mu.Lock() // Who found it finished is still in look, perhaps.
	known := g.closing()
	g.mu.Unlock()
	p.mu.Lock()
	if (*p.open.Load())[g.id] != g {
		p.mu.Unlock()
		return // It was dropped.
	}
	c := &closedSegment{id: g.id, Closing: known, summed: true, unclosed: map[view.NodeID]bool{}}
	streams := *g.copies.Load()
	for _, s := range streams {
		if s.good() {
			c.holders = append(c.holders, s.node)
			c.unclosed[s.node] = true
		}
	}
	p.unpublish(g.id)
	p.books.closed[g.id] = c
	holders := slices.Clone(c.holders) // The books are the lock's from here on.
	p.mu.Unlock()
	p.end(streams...)
	for _, n := range holders {
		p.start(func(ctx context.Context) { p.closeAt(ctx, c, n) })
	}
	if len(holders) < p.o.Copies {
		p.copier.wake()
	}
}

// closeAt tells a backup until it has understood, or is no backup of the segment any more.
func (p *Primary) closeAt(ctx context.Context, c *closedSegment, node view.NodeID) {
	request := CloseRequest{Log: p.source.LogID, Segment: c.id, Closing: c.Closing}
	for pause := firstPause; ctx.Err() == nil && p.holds(c, node); pause = min(2*pause, maxPause) {
		err := p.closeOnce(ctx, c, node, request)
		switch {
		case err == nil:
			return
		case errors.Is(err, ErrCorrupt), errors.Is(err, ErrNotFound), errors.Is(err, ErrStale):
			p.o.Log.Warn("a replica is not what it should be; another one is made", "node", node, "segment", c.id, "error", err)
			p.forfeit(c, node)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (p *Primary) closeOnce(ctx context.Context, c *closedSegment, node view.NodeID, request CloseRequest) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	order := p.keeper.order(node)
	order.Lock()
	defer order.Unlock()
	_, err := p.call(ctx, node, MethodClose, request, nil, nil)
	if err == nil {
		p.confirm(c, node)
	}
	return err
}

func (p *Primary) holds(c *closedSegment, node view.NodeID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.books.closed[c.id] == c && slices.Contains(c.holders, node)
}

// confirm notes that a replica is closed: it needs no version any more.
func (p *Primary) confirm(c *closedSegment, node view.NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(c.unclosed, node)
}

// forfeit notes that a node has no good copy of a closed segment.
func (p *Primary) forfeit(c *closedSegment, node view.NodeID) {
	p.mu.Lock()
	c.leave(node)
	c.partly = append(c.partly, node)
	p.mu.Unlock()
	p.copier.wake()
}

// join makes a node one of the holders, once: who made a copy there and who asks the node may both tell of it. The
// caller holds the primary's mu.
func (c *closedSegment) join(node view.NodeID) {
	if !slices.Contains(c.holders, node) {
		c.holders = append(slices.Clone(c.holders), node)
	}
}

// leave takes a node from the holders. The caller holds the primary's mu.
func (c *closedSegment) leave(node view.NodeID) {
	c.holders = slices.DeleteFunc(slices.Clone(c.holders), func(n view.NodeID) bool { return n == node })
	delete(c.unclosed, node)
}
