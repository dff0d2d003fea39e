package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// lacking are open segments that have a bad copy, one that does not count yet, or fewer
// than they could.
func (p *Primary) lacking(usable int) []*openSegment {
	p.mu.Lock()
	defer p.mu.Unlock()
	want := max(p.books.copies, min(p.o.Copies, usable))
	var all []*openSegment
	for _, g := range *p.open.Load() {
		if n := g.number((*stream).counts); n < want || n < len(*g.copies.Load()) {
			all = append(all, g)
		}
	}
	return all
}

// replaceOpen gives open segments new replicas for those that went bad.
func (p *Primary) replaceOpen(ctx context.Context, m Membership, patience time.Duration) error {
	lacking := p.lacking(len(p.usable(m.Living)))
	if len(lacking) == 0 {
		return nil
	}
	began := p.o.Now()
	var refused error
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, g := range lacking {
		all.Go(func() {
			err := p.recruit(ctx, g, m, recruiting{creating: true, patience: patience})
			mu.Lock()
			defer mu.Unlock()
			refused = errors.Join(refused, err)
		})
	}
	all.Wait()
	for _, g := range lacking {
		if err := p.awaitCopies(ctx, g, m.Changed); err != nil {
			return errors.Join(err, refused)
		}
	}
	if !p.unsettled() {
		return nil // Nobody could take another copy.
	}
	if err := p.raise(ctx); err != nil {
		return err
	}
	if err := p.swap(); err != nil {
		return err
	}
	p.o.Log.Info("open segments have their copies again", "segments", len(lacking), "took", p.o.Now().Sub(began))
	return nil
}

// unsettled tells whether a copy is to be left out, or to count from now on.
func (p *Primary) unsettled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range *p.open.Load() {
		if g.number(func(s *stream) bool { return !s.counts() }) > 0 {
			return true
		}
	}
	return false
}

// awaitCopies returns when so many good copies of the segment are complete as each must have.
func (p *Primary) awaitCopies(ctx context.Context, g *openSegment, changed <-chan struct{}) error {
	for _, s := range *g.copies.Load() {
		for s.good() {
			select {
			case <-s.complete:
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				return errors.New("the members have changed")
			case <-time.After(time.Millisecond): // Its link may have failed.
				continue
			}
			break
		}
	}
	p.mu.Lock()
	need := p.books.copies
	p.mu.Unlock()
	if good := g.goodCopies(); good < need {
		return fmt.Errorf("segment %d has %d good copies of %d", g.id, good, need)
	}
	return nil
}

// swap leaves out bad copies of all segments that have enough good ones: they are
// stale by now. What waited for them counts.
func (p *Primary) swap() error {
	p.mu.Lock()
	var dropped []*stream
	segments := slices.Collect(maps.Values(*p.open.Load()))
	left := 0
	for _, g := range segments {
		counts := func(s *stream) bool { return s.good() && s.version >= p.books.version }
		if n := g.number(counts); n >= p.books.copies {
			dropped = append(dropped, g.drop(func(s *stream) bool { return !counts(s) })...)
		} else {
			left++
		}
	}
	p.books.counts.replaced += uint64(len(dropped))
	p.mu.Unlock()
	p.end(dropped...)
	moved := false
	for _, g := range segments {
		moved = p.count(g) || moved
	}
	if moved {
		p.source.Advanced()
	}
	if left > 0 {
		return fmt.Errorf("%d open segments have lost another copy meanwhile", left)
	}
	return nil
}
