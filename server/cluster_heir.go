package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/background"
)

// legacy is parts of logs that an heir replays together, for they have places in
// common: when an heir has died half-way, its own log has some of what it
// had replayed, and each of both may have the tombstones of the other's records. So have both sides
// of a migration. A part of a living log, whose node returns what it got by a migration, is as any other.
type legacy []meta.Share

// ranges are all places of it.
func (g legacy) ranges() (all view.Ranges) {
	for _, s := range g {
		all = all.Union(s.Ranges)
	}
	return all
}

// inheritance is all that others' logs have for a node.
func inheritance(s *meta.Snapshot, heir view.NodeID) (all legacy) {
	for r := range s.Replays() {
		for _, p := range r.Parts {
			if p.Heir == heir && !p.Done {
				all = append(all, meta.Share{Log: r.Log, Ranges: p.Ranges, Return: r.Return})
			}
		}
	}
	return all
}

// legacies returns what a node is to replay and can, as all of it has a plan.
func legacies(s *meta.Snapshot, heir view.NodeID) []legacy {
	var groups []legacy
	for _, share := range inheritance(s, heir) {
		groups = join(groups, share)
	}
	return slices.DeleteFunc(groups, func(g legacy) bool {
		return slices.ContainsFunc(g, func(p meta.Share) bool {
			r, _ := s.Replay(p)
			return r.Plan == nil
		})
	})
}

// has tells whether a share is part of the legacy.
func (g legacy) has(share meta.Share) bool {
	return slices.ContainsFunc(g, func(o meta.Share) bool {
		return o.Log == share.Log && o.Return == share.Return && o.Ranges.Equal(share.Ranges)
	})
}

// join adds a share, and makes one group of all that have places in common with it.
func join(groups []legacy, share meta.Share) []legacy {
	merged := legacy{share}
	var apart []legacy
	for _, g := range groups {
		if len(g.ranges().Intersect(share.Ranges)) > 0 {
			merged = append(merged, g...)
		} else {
			apart = append(apart, g)
		}
	}
	return append(apart, merged)
}

// inherit replays what others left to this node, and has it copied, for as long as it is a member.
func (l *life) inherit(ctx context.Context, m *meta.Member) {
	select {
	case <-l.opened:
	case <-ctx.Done():
		return
	}
	l.heir.Lock()
	defer l.heir.Unlock()
	defer l.taken.rest()
	l.taken.goOn(ctx, m)
	var told complaint
	for ctx.Err() == nil {
		changed := l.cache.Changed()
		groups := l.taken.lacking(legacies(l.cache.Snapshot(), l.id.Node))
		var failed error
		for _, g := range groups {
			if failed = l.take(ctx, m, g, told.what == ""); failed != nil {
				break
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case failed != nil:
			if told.isNew(failed, time.Now()) {
				l.log.Warn("what this node inherits could not be replayed; it tries again", "why", failed)
			}
			background.Pause(ctx, 200*time.Millisecond)
		case len(groups) == 0:
			told = complaint{}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
}

// complaint is what was told last of something that is tried again and again.
type complaint struct {
	what string
	at   time.Time
}

// complainEvery is how often the same is told.
const complainEvery = 10 * time.Second

// isNew tells whether an error is to be told: another one than before, or one that lasts.
func (c *complaint) isNew(err error, now time.Time) bool {
	if c.what == err.Error() && now.Sub(c.at) < complainEvery {
		return false
	}
	c.what, c.at = err.Error(), now
	return true
}

// take replays a legacy, serves it, and has the copies made that it lacks. Only then are the
// logs not needed any more which it came from. It tells that it begins the first time.
func (l *life) take(ctx context.Context, m *meta.Member, g legacy, first bool) error {
	if err := l.taken.drop(ctx, l, g); err != nil {
		return err
	}
	t, err := l.replay(ctx, m, g, first)
	if err != nil {
		return err
	}
	l.taken.add(ctx, m, t)
	return nil
}

// replay brings all records of a legacy into this node's store, and serves them.
func (l *life) replay(ctx context.Context, m *meta.Member, g legacy, first bool) (*taking, error) {
	began := time.Now()
	ranges := g.ranges()
	if first {
		l.log.Info("this node replays what it inherits", "logs", len(g), "share", fmt.Sprintf("%.2f%%", 100*ranges.Fraction()))
	}
	im, err := l.importer(ctx, ranges)
	if err != nil {
		return nil, err
	}
	r := &replaying{life: l, member: m, importer: im, began: began}
	if err := r.all(ctx, g); err != nil {
		im.Abort()
		return nil, err
	}
	if err := l.makeSafe(ctx, ranges); err != nil {
		im.Abort()
		return nil, err
	}
	stats := im.Stats()
	l.inherited.Add(stats.Taken)
	l.log.Info("this node has all that it inherited", "records", stats.Taken, "bytes", stats.Bytes, "took", time.Since(began).Round(time.Millisecond).String())
	t := &taking{replaying: r, legacy: g, over: make(chan struct{})}
	// While records still arrive there as far as the store knows, whoever looks for one waits until that has ended, which
	// it does when the cluster knows that all is here.
	if !l.store.Arrives(migrate.Ranges(ranges)) {
		t.serves = true
		l.gate.serve(g)
	}
	return t, nil
}

// makeSafe sees to what an import passes over because the store has it: a migration may have brought it,
// whose source is dead now, to a segment that has no copies.
func (l *life) makeSafe(ctx context.Context, ranges view.Ranges) error {
	if l.adoptArrivals == nil {
		return nil
	}
	return l.adoptArrivals(ctx, ranges)
}

// importer begins an import of places, once nothing of them runs here but what knows of it: a
// source that gave them away a moment ago, and gets them back, may still be at work on them.
func (l *life) importer(ctx context.Context, ranges view.Ranges) (*store.Importer, error) {
	if err := l.haltReturn(ctx, ranges); err != nil {
		return nil, err
	}
	l.taking.Lock()
	defer l.taking.Unlock()
	l.gate.show(l.cache.Snapshot())
	passed := make(chan struct{})
	l.store.AfterGuards(func() { close(passed) })
	select {
	case <-passed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return l.store.NewImporter(store.ImportOptions{Owns: ranges.Contains, Aside: migrate.Ranges(ranges)})
}
