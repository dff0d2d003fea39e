package meta

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// askedAtOnce is how many migrations are asked for in one step: each has two conditions, and etcd takes 128 in one.
const askedAtOnce = 60

// Migrate asks for several migrations, as to drain a node: in one step, or if they are many in a few, one after the other.
// A step asks for nothing, and none follows it, if any of its migrations was overtaken: a range has another owner by now, or is
// in another migration. What was asked for before stands. So each must make sense without those behind it: whoever wants the rest, or
// takes over from a coordinator that died between two steps, plans again for what is left.
func (t *Term) Migrate(ctx context.Context, why string, moves ...view.Move) (asked int, err error) {
	for some := range slices.Chunk(inParts(moves), askedAtOnce) {
		if err := t.migrate(ctx, why, some); err != nil {
			return asked, err
		}
		asked += len(some)
	}
	return asked, nil
}

// migrate asks for a few in one step.
func (t *Term) migrate(ctx context.Context, why string, moves []view.Move) error {
	return t.change(ctx, func(e *edit) error {
		last := e.seen.lastMigration
		for _, move := range moves {
			last++
			m := Migration{
				ID: last, Source: move.From, Target: move.To, Ranges: move.Ranges,
				Options: MigrationOptions{Sample: true}, Stage: Wanted, Why: why, Requested: time.Now().UTC(),
			}
			if err := e.seen.timely(m); err != nil {
				return err
			}
			e.need(keyAlive(m.Target))
			if err := e.put(keyMigration(m.ID), m); err != nil {
				return err
			}
		}
		e.need(keyMap)
		return e.put(keyMigrationCounter, last)
	})
}

// inParts cuts moves of more ranges than one migration may have.
func inParts(moves []view.Move) (all []view.Move) {
	for _, m := range moves {
		for part := range slices.Chunk(m.Ranges, MaxRanges) {
			all = append(all, view.Move{Ranges: part, From: m.From, To: m.To})
		}
	}
	return all
}

// timely says why a migration that was planned a moment ago makes no sense any more.
func (s *Snapshot) timely(m Migration) error {
	if err := s.possible(m); err != nil {
		return err
	}
	if gone := m.Ranges.Subtract(s.Map.Ranges(m.Source)); len(gone) > 0 {
		return fmt.Errorf("%s does not own %s any more", m.Source, gone)
	}
	for _, other := range s.Open(m.Source) {
		if both := other.Ranges.Intersect(m.Ranges); len(both) > 0 {
			return fmt.Errorf("migration %d moves %s already", other.ID, both)
		}
	}
	return nil
}

// Open returns all migrations to or from a node that have not ended, the oldest first.
func (s *Snapshot) Open(n view.NodeID) []Migration {
	return s.migrations(func(m Migration) bool { return m.of(n) && !m.Stage.Ended() })
}

// BeginDrain marks a node as draining, as a wish asks for that still stands, unless there is a reason why it cannot be: then the wish
// is refused. The reason is asked for as of the change, for others may be drained at the same time.
func (t *Term) BeginDrain(ctx context.Context, n view.NodeID, w Wish, cannot func(*Snapshot, view.NodeID) string) error {
	return t.answer(ctx, n, w, func(e *edit) error {
		if why := cannot(e.seen, n); why != "" {
			return e.refuse(n, w, why)
		}
		return e.mark(n, func(m *Marks) { m.Draining = true })
	})
}

// RefuseDrain says why a node will not be drained after all, and takes its mark back, in one step.
func (t *Term) RefuseDrain(ctx context.Context, n view.NodeID, w Wish, why string) error {
	return t.answer(ctx, n, w, func(e *edit) error {
		if err := e.mark(n, func(m *Marks) { m.Draining = false }); err != nil {
			return err
		}
		return e.refuse(n, w, why)
	})
}
