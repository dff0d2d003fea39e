package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/background"
)

// origin is this node as the source of migrations.
type origin struct{ *host }

var errNoLife = errors.New("the node is starting or begins another log: ask again")

// opened is the life that has a store.
func (o origin) opened() (*life, error) {
	l := o.life.Load()
	if l == nil {
		return nil, errNoLife
	}
	select {
	case <-l.opened:
		return l, nil
	default:
		return nil, errNoLife
	}
}

// Shelf is what targets read from.
func (o origin) Shelf() (*migrate.Shelf, error) {
	l, err := o.opened()
	if err != nil {
		return nil, err
	}
	return l.shelf, nil
}

// Yield gives ranges away; see migrate.Origin.
func (o origin) Yield(ctx context.Context, id migrate.ID, target view.NodeID, asked meta.Asked) (m meta.Migration, since time.Time, err error) {
	l, err := o.opened()
	if err != nil {
		return m, since, err
	}
	m, since, err = l.move(ctx, id, target, asked)
	if err != nil {
		return m, since, err
	}
	return m, since, l.yield(ctx, m)
}

// Given returns a migration whose ranges this node has yielded, or whose target copies them.
func (o origin) Given(ctx context.Context, id migrate.ID, target view.NodeID) (meta.Migration, error) {
	l, err := o.opened()
	if err != nil {
		return meta.Migration{}, err
	}
	m := l.cache.Snapshot().Migrations[id]
	if err := l.gives(m, id, target); err != nil {
		return m, err
	}
	if m.Stage == meta.Copying {
		if l.departures.of(id) == nil {
			return m, errNotNoted
		}
		return m, nil
	}
	if m.Stage != meta.Moving {
		return m, fmt.Errorf("migration %d is %s: there is nothing to pull", id, m.Stage)
	}
	return m, l.yield(ctx, m)
}

// How long keys are noted for a sample, and how many. Nobody waits for it but the migration; what it has
// clients need not ask for.
const (
	sampleFor  = 100 * time.Millisecond
	sampleKeys = 4096
)

// Sample notes which keys of a migration clients use.
func (o origin) Sample(ctx context.Context, id migrate.ID, target view.NodeID, begun func(view.Ranges) error) error {
	l, err := o.opened()
	if err != nil {
		return err
	}
	s, err := l.cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[id].ID == id })
	if err != nil {
		return err
	}
	if err := l.gives(s.Migrations[id], id, target); err != nil {
		return err
	}
	if err := begun(s.Migrations[id].Ranges); err != nil {
		return err
	}
	sample := store.NewSample(migrate.Ranges(s.Migrations[id].Ranges), sampleKeys)
	end := l.gate.note(sample)
	background.Pause(ctx, sampleFor)
	end()
	l.yields.keep(id, sample.Keys(), l.cache.Snapshot())
	return nil
}

// Sampled are the keys that were noted for a migration to a target.
func (o origin) Sampled(id migrate.ID, target view.NodeID) []store.ArrivingKey {
	l, err := o.opened()
	if err != nil || l.gives(l.cache.Snapshot().Migrations[id], id, target) != nil {
		return nil
	}
	return l.yields.kept(id)
}

// Returned waits until this node knows that a migration from it was undone.
func (o origin) Returned(ctx context.Context, id migrate.ID) error {
	l, err := o.opened()
	if err != nil {
		return err
	}
	s, err := l.cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[id].Stage != meta.Moving })
	if err != nil {
		return err
	}
	l.gate.show(s)
	return nil
}

// gives says why a migration is not one from this node to the target.
func (l *life) gives(m meta.Migration, id migrate.ID, target view.NodeID) error {
	switch {
	case m.ID != id:
		return fmt.Errorf("there is no migration %d", id)
	case m.Source != l.self || m.Target != target:
		return fmt.Errorf("migration %d goes from %s to %s, not from %s to %s", id, m.Source, m.Target, l.self, target)
	case m.Stage != meta.Wanted && m.Stage != meta.Copying && m.SourceLog != l.id.Log:
		return fmt.Errorf("migration %d is of a log that %s does not have any more", id, l.self) // It must not say that there is nothing.
	}
	return nil
}

// move writes that the ranges are the target's, unless that is so, and returns since when that is seen here; no moment if it was before.
func (l *life) move(ctx context.Context, id migrate.ID, target view.NodeID, asked meta.Asked) (m meta.Migration, since time.Time, err error) {
	seen, err := l.cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[id].ID == id })
	if err != nil {
		return m, since, err
	}
	m = seen.Migrations[id]
	if err := l.gives(m, id, target); err != nil {
		return m, since, err
	}
	begun := func(s *meta.Snapshot) bool { return s.Migrations[id].Stage != meta.Wanted }
	if m.Stage == meta.Wanted {
		member, err := l.ledger.current()
		if err != nil {
			return m, since, err
		}
		l.log.Info("this node gives keys away", "migration", id, "to", string(target), "share", fmt.Sprintf("%.3f%%", 100*m.Ranges.Fraction()))
		// Clients of the ranges wait from when it is seen.
		if _, err := l.cache.WaitWritten(ctx, begun, func(ctx context.Context) error {
			_, err := member.Move(ctx, id, asked)
			return err
		}); err != nil {
			return m, since, err
		}
		since = time.Now()
		if err := l.haltAt(ctx, migrate.Given); err != nil {
			return m, since, err
		}
	}
	seen, err = l.cache.Wait(ctx, begun)
	if err != nil {
		return m, since, err
	}
	if m = seen.Migrations[id]; m.Stage != meta.Moving {
		return m, since, fmt.Errorf("migration %d is %s", id, m.Stage)
	}
	return m, since, l.gives(m, id, target)
}

// yields remembers which migrations this life has yielded to, so that a pull need not find out again.
type yields struct {
	mu   sync.RWMutex // quiet goroutines only read
	done map[migrate.ID]bool
	keys map[migrate.ID][]store.ArrivingKey // that were sampled
}

// keep keeps a migration's sample, and forgets those of migrations that are over.
func (y *yields) keep(id migrate.ID, keys []store.ArrivingKey, s *meta.Snapshot) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.keys == nil {
		y.keys = map[migrate.ID][]store.ArrivingKey{}
	}
	maps.DeleteFunc(y.keys, func(other migrate.ID, _ []store.ArrivingKey) bool { return isOver(s, other) })
	y.keys[id] = keys
}

// isOver tells whether a migration is over, as far as a snapshot knows.
func isOver(s *meta.Snapshot, id migrate.ID) bool {
	m, known := s.Migrations[id]
	return !known || m.Stage.Ended()
}

func (y *yields) kept(id migrate.ID) []store.ArrivingKey {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.keys[id]
}

func (y *yields) has(id migrate.ID) bool {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.done[id]
}

// add notes that a migration was yielded to, and forgets those that are over.
func (y *yields) add(id migrate.ID, s *meta.Snapshot) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.done == nil {
		y.done = map[migrate.ID]bool{}
	}
	maps.DeleteFunc(y.done, func(other migrate.ID, _ bool) bool { return isOver(s, other) })
	y.done[id] = true
}

// yield returns when nobody executes on ranges that are another's, and all that was executed is in every copy of the
// log: a cut. A life that began after they had left has nothing to wait for but that.
func (l *life) yield(ctx context.Context, m meta.Migration) error {
	if l.yields.has(m.ID) {
		return nil
	}
	began := time.Now()
	l.gate.show(l.cache.Snapshot())
	if _, err := l.cut(ctx); err != nil {
		return err
	}
	if err := l.haltAt(ctx, migrate.Severed); err != nil {
		return err
	}
	l.yields.add(m.ID, l.cache.Snapshot())
	l.log.Info("this node has yielded", "migration", m.ID, "to", string(m.Target), "cut", time.Since(began).Round(time.Microsecond).String())
	return nil
}

// cut returns when all front doors act on what the gate shows now, and all that they did before is in every copy
// of the log, whose last batch it returns.
func (l *life) cut(ctx context.Context) (record.BatchID, error) {
	passed := make(chan struct{})
	l.store.AfterGuards(func() { close(passed) })
	select {
	case <-passed:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return l.store.Settle(ctx)
}
