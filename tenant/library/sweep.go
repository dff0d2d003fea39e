package library

import (
	"fmt"
	"time"
)

// sweepEvery is how often it is looked for what deleted tenants have left, beside when tenants change.
const sweepEvery = time.Minute

// sweepLoop takes away what deleted tenants have left.
func (l *Library) sweepLoop() {
	if l.opts.Gone == nil {
		return
	}
	every := time.NewTicker(sweepEvery)
	defer every.Stop()
	for {
		var changed <-chan struct{}
		if l.opts.Changed != nil {
			changed = l.opts.Changed()
		}
		if err := l.sweep(); err != nil && l.ctx.Err() == nil {
			l.log.Warn("the functions of a deleted tenant could not be deleted; it is tried again", "error", err)
		}
		select {
		case <-l.ctx.Done():
			return
		case <-changed:
		case <-every.C:
		}
	}
}

func (l *Library) sweep() error {
	for _, s := range l.all() {
		if s.owner == Operator || !l.opts.Gone(s.owner) {
			continue
		}
		if err := s.Flush(l.ctx); err != nil {
			return fmt.Errorf("delete the functions of %s: %w", s.tenant, err)
		}
		l.mu.Lock()
		delete(l.shelves, s.owner)
		l.mu.Unlock()
	}
	return nil
}

func (l *Library) all() []*Shelf {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*Shelf, 0, len(l.shelves))
	for _, s := range l.shelves {
		all = append(all, s)
	}
	return all
}
