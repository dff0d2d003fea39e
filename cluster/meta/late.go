package meta

import (
	"context"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// A migration with late ownership. Its target copies the ranges while their source owns and serves them, and
// nothing of the copy counts until one step gives it all: the ranges, the floor of the target's log, and the end of the
// migration. So there is no time in which two logs are needed, and a death ends it as if it had never been:
//
//	wanted ── Copy ── copying ── HandOver ── done
//	                     └── cancelled, failed: the target drops its copy
//
// What the target's log has of a copy that came to nothing is as what has left it: the target is not given
// these places, by whatever way, before it has dropped them and its log has a floor.

// Copy says that this node, the target of a migration with late ownership, begins to copy. A target that begins anew
// says it again, before it drops anything: what it offered before is not taken any more then.
func (m *Member) Copy(ctx context.Context, id uint64) (Migration, error) {
	var mig Migration
	err := m.change(ctx, func(e *edit) (err error) {
		mig, err = e.migration(id)
		switch {
		case err != nil:
			return err
		case mig.Target != m.Node.ID:
			return fmt.Errorf("migration %d is to %s, not for %s to begin", id, mig.Target, m.Node.ID)
		case !mig.Options.late():
			return fmt.Errorf("migration %d is for its source to begin", id)
		case mig.Stage != Wanted && mig.Stage != Copying:
			return fmt.Errorf("migration %d is %s: it cannot be copied", id, mig.Stage)
		}
		if err := e.seen.Ready(mig); err != nil {
			return err
		}
		if mig.Began.IsZero() {
			mig.Began = time.Now().UTC()
		}
		mig.Stage, mig.TargetLog = Copying, m.Node.Log
		mig.Attempt++
		e.need(keyMap)
		e.need(keyAlive(mig.Source))
		// Who has planned to give this node something of its source's meanwhile must look again.
		if err := e.putLog(e.log(m.Node.Log)); err != nil {
			return err
		}
		return e.put(keyMigration(id), mig)
	})
	return mig, err
}

// Incarnation tells a member from what its node was before and will be after. A process that begins anew is
// another one.
func (m *Member) Incarnation() int64 { return m.fence.created }

// Incarnation is that of a node which is alive; 0 if it is not.
func (s *Snapshot) Incarnation(n view.NodeID) int64 { return s.raw.created(keyAlive(n)) }

// Copied is a copy that is whole.
type Copied struct {
	// From and FromSegment are where the target's log was before the first record of it.
	From        record.BatchID
	FromSegment record.SegmentID
	// Attempt and Incarnation are which copy it is, and which process of the target has it. One that began
	// anew since has not what it says.
	Attempt     int
	Incarnation int64
	Stats       MigrationStats
}

// HandOver gives the ranges of a migration with late ownership to its target, and ends it. This node, the
// source, has stopped to serve them, and the target has all of them in all copies of its log. If it fails without
// having been refused it may still come to pass: until the migration is seen to have ended nobody may serve.
func (m *Member) HandOver(ctx context.Context, id uint64, c Copied) error {
	return m.change(ctx, func(e *edit) error {
		mig, err := e.migration(id)
		switch {
		case err != nil:
			return err
		case mig.Source != m.Node.ID:
			return fmt.Errorf("migration %d is of %s, not for %s to hand over", id, mig.Source, m.Node.ID)
		case mig.Stage != Copying || e.seen.Nodes[mig.Target].Log != mig.TargetLog:
			return fmt.Errorf("migration %d is %s: there is nothing to hand over", id, mig.Stage)
		case mig.Attempt != c.Attempt || e.seen.Incarnation(mig.Target) != c.Incarnation:
			return fmt.Errorf("%s began anew and has to copy again", mig.Target)
		}
		if err := e.seen.Ready(mig); err != nil {
			return err
		}
		return e.handOver(mig, m.Node.Log, c)
	})
}

// handOver writes it.
func (e *edit) handOver(m Migration, source record.LogID, c Copied) error {
	next, err := e.seen.Map.Apply(view.Move{Ranges: m.Ranges, From: m.Source, To: m.Target})
	if err != nil {
		return err
	}
	e.need(keyAlive(m.Target))
	e.need(keyNode(m.Target))
	m.SourceLog, m.From, m.FromSegment = source, c.From, c.FromSegment
	m.Records, m.Bytes = c.Stats.Records, c.Stats.Bytes
	log := e.log(m.TargetLog)
	log.Floors = raised(log.Floors, Floor{Ranges: m.Ranges, Batch: c.From, Segment: c.FromSegment})
	if err := e.putLog(log); err != nil {
		return err
	}
	if err := e.leave(source, m.Ranges); err != nil {
		return err
	}
	if err := e.putMap(next); err != nil {
		return err
	}
	return e.end(m, Done, m.Why)
}

// abandoned notes that the log of a target has a copy which counts for nothing, if a migration ends so.
func (e *edit) abandoned(m Migration, as Stage) error {
	if m.Stage != Copying || as == Done {
		return nil
	}
	return e.leave(m.TargetLog, m.Ranges)
}

// copying returns what a node has copied, or may have, of what others own.
func (s *Snapshot) copying(n view.NodeID) (ranges view.Ranges) {
	for _, m := range s.Migrations {
		if m.Target == n && m.Stage == Copying {
			ranges = ranges.Union(m.Ranges)
		}
	}
	return ranges
}

// Unfit returns places that a node cannot be heir of now: its log has something of them that does not count, and
// no floor that says so.
func (s *Snapshot) Unfit(n view.NodeID) view.Ranges { return s.leaving(n).Union(s.copying(n)) }
