package meta

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// Migrate asks for several migrations in one step, as one of them makes sense only with the others: to drain a node, say.
// It asks for nothing if any of them was overtaken: a range has another owner by now, or is
// in another migration.
func (t *Term) Migrate(ctx context.Context, why string, moves ...view.Move) (asked int, err error) {
	err = t.change(ctx, func(e *edit) error {
		asked = 0
		for _, move := range inParts(moves) {
			m := Migration{
				ID: e.seen.lastMigration + uint64(asked) + 1, Source: move.From, Target: move.To, Ranges: move.Ranges,
				Options: MigrationOptions{Sample: true}, Stage: Wanted, Why: why, Requested: time.Now().UTC(),
			}
			if err := e.seen.timely(m); err != nil {
				return err
			}
			e.need(keyAlive(m.Target))
			if err := e.put(keyMigration(m.ID), m); err != nil {
				return err
			}
			asked++
		}
		if asked == 0 {
			return nil
		}
		e.need(keyMap)
		return e.put(keyMigrationCounter, e.seen.lastMigration+uint64(asked))
	})
	return asked, err
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

// BeginDrain marks a node as draining, as a wish asks for that still stands.
func (t *Term) BeginDrain(ctx context.Context, n view.NodeID, w Wish) error {
	return t.answer(ctx, n, w, func(e *edit) error {
		return e.mark(n, func(m *Marks) { m.Draining = true })
	})
}

// RefuseDrain says why a node will not be drained after all, and takes its mark back, in one step.
func (t *Term) RefuseDrain(ctx context.Context, n view.NodeID, w Wish, why string) error {
	return t.answer(ctx, n, w, func(e *edit) error {
		if err := e.mark(n, func(m *Marks) { m.Draining = false }); err != nil {
			return err
		}
		w.Refused, w.Waiting = why, ""
		return e.put(keyWish(n), w)
	})
}
