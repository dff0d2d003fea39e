package meta

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Migrate asks for ranges to be moved. The target begins as soon as it can.
func (s *Store) Migrate(ctx context.Context, req MigrationRequest) (Migration, error) {
	m := Migration{
		Source: req.Source, Target: req.Target, Ranges: view.RangesOf(req.Ranges...), Options: req.Options,
		Stage: Wanted, By: req.By, Why: req.Why, Requested: time.Now().UTC(),
	}
	if err := req.Options.Check(); err != nil {
		return m, err
	}
	_, _, err := s.change(ctx, nil, func(e *edit) error {
		if err := e.seen.possible(m); err != nil {
			return err
		}
		m.ID = e.seen.lastMigration + 1
		e.need(keyNode(m.Source))
		e.need(keyAlive(m.Target))
		if err := e.put(keyMigrationCounter, m.ID); err != nil {
			return err
		}
		return e.put(keyMigration(m.ID), m)
	})
	return m, err
}

// possible says what is wrong with a migration that nobody could ever carry out.
func (s *Snapshot) possible(m Migration) error {
	_, known := s.Nodes[m.Source]
	switch {
	case !known:
		return fmt.Errorf("there is no node %s: `ostro cluster status` lists them", m.Source)
	case m.Source == m.Target:
		return fmt.Errorf("%s has these ranges already: move them to another node", m.Target)
	case len(m.Ranges) == 0:
		return errors.New("there is nothing to move: name a range")
	case !s.alive(m.Target):
		return fmt.Errorf("%s is not alive: move the ranges to a node that is", m.Target)
	case s.Draining(m.Target):
		return fmt.Errorf("%s is being drained: move the ranges to a node that stays", m.Target)
	}
	return s.fits(m)
}

// A migration begins in one transaction, which has the map, the migration and the target's floors: etcd takes 1.5 MB, and
// every node reads it. A range has some 40 bytes as JSON, and one of the map 65.
const (
	// MaxRanges is how many ranges one migration moves at most.
	MaxRanges = 4096
	// maxSpans is how many ranges all nodes have together at most.
	maxSpans = 16384
)

// fits says why a migration is too finely cut.
func (s *Snapshot) fits(m Migration) error {
	if n := len(m.Ranges); n > MaxRanges {
		return fmt.Errorf("that is %d ranges, and one migration moves %d at most: move some of them at a time, or larger ones", n, MaxRanges)
	}
	if cuts := s.cuts(m); cuts > 0 {
		if n := len(s.Map.Spans()) + cuts; n > maxSpans {
			return fmt.Errorf("the nodes would have up to %d ranges together, and the metadata have room for %d: move ranges back to their neighbours' owners first", n, maxSpans)
		}
	}
	return nil
}

// cuts is how many ranges of the map a migration cuts in two.
func (s *Snapshot) cuts(m Migration) (n int) {
	first, last := map[record.Place]bool{}, map[record.Place]bool{}
	for _, r := range s.Map.Ranges(m.Source) {
		first[r.First], last[r.Last] = true, true
	}
	for _, r := range m.Ranges {
		if !first[r.First] {
			n++
		}
		if !last[r.Last] {
			n++
		}
	}
	return n
}

// CancelMigration ends a migration that has not begun, and asks the target of one that has to return
// what it got.
func (s *Store) CancelMigration(ctx context.Context, id uint64) error {
	_, _, err := s.change(ctx, nil, func(e *edit) error {
		m, err := e.migration(id)
		switch {
		case err != nil:
			return err
		case m.Stage == Wanted:
			return e.end(m, Cancelled, "it was cancelled before it began")
		case m.Stage == Copying:
			return e.end(m, Cancelled, "it was cancelled before anything had changed hands")
		case m.Stage == Moving && !m.Cancel:
			m.Cancel = true
			return e.put(keyMigration(id), m)
		}
		return nil
	})
	return err
}

// migration returns one that has not ended.
func (e *edit) migration(id uint64) (Migration, error) {
	m, there := e.seen.Migrations[id]
	switch {
	case !there:
		return m, fmt.Errorf("there is no migration %d: `ostro migrate list` shows them", id)
	case m.Stage.Ended():
		return m, fmt.Errorf("migration %d has ended: it is %s", id, m.Stage)
	}
	return m, nil
}

// Asked is what the target of a migration says when it asks the source to begin.
type Asked struct {
	// From and FromSegment are where the target's log stands: nothing before counts of the ranges.
	From        record.BatchID
	FromSegment record.SegmentID
	// Incarnation is which process of the target asks. Of another one it is another log that stands there, perhaps: by the end of one
	// that was long, all that the target writes to a new one would lie below its floor.
	Incarnation int64
}

// Asks is how this node, a target whose log stands there, asks a source to begin.
func (m *Member) Asks(from record.BatchID, segment record.SegmentID) Asked {
	return Asked{From: from, FromSegment: segment, Incarnation: m.Incarnation()}
}

// Move gives the ranges of a wanted migration, whose source this node is, to its target: it raises both views and
// sets the floor of the target's log, in one step. The target serves them only after this node has
// said that it no longer does. Asked again it changes nothing and returns what was decided.
func (m *Member) Move(ctx context.Context, id uint64, asked Asked) (Migration, error) {
	var mig Migration
	err := m.change(ctx, func(e *edit) (err error) {
		mig, err = e.migration(id)
		switch {
		case err != nil:
			return err
		case mig.Source != m.Node.ID:
			return fmt.Errorf("migration %d is of %s, not for %s to begin", id, mig.Source, m.Node.ID)
		case mig.Stage == Moving:
			return nil
		case mig.Stage != Wanted || mig.Options.late():
			return fmt.Errorf("migration %d is %s: it cannot begin", id, mig.Stage)
		}
		if err := e.seen.Ready(mig); err != nil {
			return err
		}
		if asked.Incarnation == 0 { // It would ask again at once if that were to pass by itself.
			return fmt.Errorf("%s runs an earlier version of Ostro, which does not say which of its processes asks: update it", mig.Target)
		}
		if e.seen.Incarnation(mig.Target) != asked.Incarnation {
			return fmt.Errorf("%w: %s has joined again since it asked, and must ask again", ErrNotYet, mig.Target)
		}
		mig.Stage, mig.Began = Moving, time.Now().UTC()
		mig.SourceLog, mig.TargetLog = m.Node.Log, e.seen.Nodes[mig.Target].Log
		mig.From, mig.FromSegment = asked.From, asked.FromSegment
		return e.move(mig)
	})
	return mig, err
}

// move writes a migration that begins.
func (e *edit) move(m Migration) error {
	next, err := e.seen.Map.Apply(view.Move{Ranges: m.Ranges, From: m.Source, To: m.Target})
	if err != nil {
		return err
	}
	e.need(keyAlive(m.Target))
	e.need(keyNode(m.Target))
	log := e.log(m.TargetLog)
	log.Floors = raised(log.Floors, Floor{Ranges: m.Ranges, Batch: m.From, Segment: m.FromSegment})
	if err := e.putLog(log); err != nil {
		return err
	}
	if err := e.putMap(next); err != nil {
		return err
	}
	return e.put(keyMigration(m.ID), m)
}

// CompleteMigration ends a migration whose target this node is: all records are safe in its own log. One that was cancelled
// before is returned instead, for whoever cancelled it was told so.
func (m *Member) CompleteMigration(ctx context.Context, id uint64, stats MigrationStats) error {
	return m.change(ctx, func(e *edit) error {
		mig, err := e.moving(id, m.Node)
		if err != nil {
			return err
		}
		if mig.Cancel {
			return fmt.Errorf("migration %d was cancelled: it is to be returned", id)
		}
		if mig.Served.IsZero() {
			mig.Records, mig.Bytes, mig.Closed, mig.Served = stats.Records, stats.Bytes, stats.Closed, stats.Served
		}
		mig.Followed = stats.Followed
		if err := e.leave(mig.SourceLog, mig.Ranges); err != nil {
			return err
		}
		return e.end(mig, Done, mig.Why)
	})
}

// ServeMigration says that this node, the target, carries all load of a migration: only cold records are still
// to come. It changes nothing else: the source's log is needed until the end. Said again, the first time counts.
func (m *Member) ServeMigration(ctx context.Context, id uint64, stats MigrationStats) error {
	return m.change(ctx, func(e *edit) error {
		mig, err := e.moving(id, m.Node)
		if err != nil || !mig.Served.IsZero() {
			return err
		}
		mig.Served = time.Now().UTC()
		mig.Records, mig.Bytes, mig.Cold, mig.Closed = stats.Records, stats.Bytes, stats.Cold, stats.Closed
		return e.put(keyMigration(id), mig)
	})
}

// moving returns a migration that is under way, and whose target a node is.
func (e *edit) moving(id uint64, target Node) (Migration, error) {
	m, err := e.migration(id)
	switch {
	case err != nil:
		return m, err
	case m.Target != target.ID:
		return m, fmt.Errorf("migration %d is to %s, not for %s to end", id, m.Target, target.ID)
	case m.Stage != Moving || m.TargetLog != target.Log:
		return m, fmt.Errorf("migration %d is %s: it cannot end so", id, m.Stage)
	}
	return m, nil
}

// FailMigration ends a migration of which nothing has changed hands, and never can.
func (m *Member) FailMigration(ctx context.Context, id uint64, why string) error {
	return m.fail(ctx, id, why)
}

// FailMigration ends a migration of which nothing has changed hands, and never can.
func (t *Term) FailMigration(ctx context.Context, id uint64, why string) error {
	return t.fail(ctx, id, why)
}

func (w writer) fail(ctx context.Context, id uint64, why string) error {
	return w.change(ctx, func(e *edit) error {
		m, err := e.migration(id)
		switch {
		case err != nil:
			return err
		case m.Stage != Wanted && m.Stage != Copying:
			return fmt.Errorf("migration %d is %s: it can be cancelled only", id, m.Stage)
		}
		return e.end(m, Failed, why)
	})
}

// Return gives the ranges of a migration back to its source. This node, its target, has stopped to serve them:
// plan is where its log was after its last write of them. The source replays it and serves. why is empty if somebody
// has cancelled the migration; else it ends as failed, with that as the reason.
func (m *Member) Return(ctx context.Context, id uint64, plan Plan, why string) error {
	return m.change(ctx, func(e *edit) error {
		mig, err := e.moving(id, m.Node)
		if err != nil {
			return err
		}
		back, err := e.seen.Map.Apply(view.Move{Ranges: mig.Ranges, From: mig.Target, To: mig.Source})
		if err != nil {
			return err
		}
		if err := e.putMap(back); err != nil {
			return err
		}
		mig.Stage = Returning
		if !mig.Cancel {
			mig.Returned = why
		}
		if err := e.put(keyMigration(id), mig); err != nil {
			return err
		}
		return e.put(keyReturn(id), Recovery{
			Node: mig.Target, Log: mig.TargetLog, Return: id, Plan: &plan,
			Parts: []Part{{Heir: mig.Source, Ranges: mig.Ranges}},
		})
	})
}

// history is how many migrations that have ended are remembered.
const history = 64

// end writes how a migration has ended, and forgets the oldest that have.
func (e *edit) end(m Migration, stage Stage, why string) error {
	if err := e.abandoned(m, stage); err != nil {
		return err
	}
	m.Stage, m.Why, m.Ended = stage, why, time.Now().UTC()
	if p, told := e.seen.Moves[m.ID]; told {
		e.delete(keyMove(m.ID))
		if m.Records == 0 && m.Bytes == 0 { // Whoever ends it may not be who knows.
			m.Records, m.Bytes = p.Records, p.Bytes
		}
	}
	ended := e.seen.migrations(func(o Migration) bool { return o.Stage.Ended() && !e.needed[keyMigration(o.ID)] })
	for ; len(ended) >= history; ended = ended[1:] {
		e.delete(keyMigration(ended[0].ID))
	}
	return e.put(keyMigration(m.ID), m)
}
