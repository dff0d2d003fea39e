package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/engine/hlog"
)

// Adopt copies side segments as a whole, and makes them part of the log.
//
// While a segment lacks copies rosters have it among those that are being opened: a recovery
// that finds a copy may read it, and one that finds none misses nothing. Its source
// has all of it until Adopt has returned. Then it is a closed segment as any other.
func (p *Primary) Adopt(ctx context.Context, segs ...hlog.SourceSegment) error {
	ctx, cancel := p.bound(ctx)
	defer cancel()
	m := p.o.Members()
	ctx, stop := p.whileThere(ctx, m)
	defer stop()
	lacking := p.thickenAll(ctx, p.adoptees(segs), segs, m)
	if err := p.adopted(segs); err != nil {
		return fmt.Errorf("adopt %d side segments: %w", len(segs), errors.Join(err, lacking, context.Cause(ctx)))
	}
	if err := p.spreadRoster(ctx, m.Living); err != nil {
		return fmt.Errorf("adopt %d side segments: %w", len(segs), errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// thickenAtOnce is how many segments thickenAll copies at a time: while one is sent others are on their way to a disk.
const thickenAtOnce = 3

// thickenAll makes the copies of some segments, a few at a time.
//
// The bytes of segs are lent until it returns.
func (p *Primary) thickenAll(ctx context.Context, some []*closedSegment, segs []hlog.SourceSegment, m Membership) error {
	errs := make([]error, len(some))
	var all sync.WaitGroup
	turns := make(chan struct{}, thickenAtOnce)
	for i, c := range some {
		at := slices.IndexFunc(segs, func(g hlog.SourceSegment) bool { return g.ID == c.id })
		read := &loaded{p: p, c: c, lent: segs[at].Bytes, patient: true}
		turns <- struct{}{}
		all.Go(func() {
			errs[i] = p.thicken(ctx, c, m, read, false)
			<-turns
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

var errLeft = errors.New("a node that could have taken a copy has gone")

// whileThere ends a context when a member has gone: nobody waits for its answer then.
func (p *Primary) whileThere(ctx context.Context, m Membership) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for changed := m.Changed; ; {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			now := p.o.Members()
			for _, n := range m.Living {
				if !has(now.Living, n.ID) {
					cancel(errLeft)
				}
			}
			changed = now.Changed
		}
	})
	return ctx, func() { cancel(nil); watch.Wait() }
}

// adoptees are those of segs that are not part of the log yet.
func (p *Primary) adoptees(segs []hlog.SourceSegment) (all []*closedSegment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range segs {
		c := p.books.closed[g.ID]
		if c == nil {
			c = &closedSegment{id: g.ID, Closing: Closing{End: g.End, Batch: g.Batch}, adopting: true}
			p.books.closed[g.ID] = c
		}
		if c.adopting {
			all = append(all, c)
		}
	}
	return all
}

// adopted makes segments part of the log, if all have their copies. One that was dropped
// meanwhile needs none.
func (p *Primary) adopted(segs []hlog.SourceSegment) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range segs {
		if c := p.books.closed[g.ID]; c != nil && c.adopting && len(c.holders) < p.books.copies {
			return fmt.Errorf("segment %d has %d copies of %d", g.ID, len(c.holders), p.books.copies)
		}
	}
	for _, g := range segs {
		if c := p.books.closed[g.ID]; c != nil && c.adopting {
			c.adopting = false
			p.books.counts.adopted++
		}
	}
	return nil
}
