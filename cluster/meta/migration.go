package meta

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Stage is how far a migration has come.
//
//	wanted ── Move ── moving ── CompleteMigration ── done
//	  │                 └── Return ── returning ── the source has replayed it ── cancelled, or failed if nobody asked for it
//	  ├── cancelled, failed
//	  └── Copy ── copying, of one with late ownership: see Copy
//
// From moving on the death of either side ends it: the other one has the ranges and replays the
// dead one's log. So it is done if the source dies, and failed if the target does.
type Stage string

const (
	// Wanted is one that nothing was done for yet.
	Wanted Stage = "wanted"
	// Copying is one whose target copies what its source owns and serves. Nothing of the copy counts.
	Copying Stage = "copying"
	// Moving is one whose target owns the ranges and still needs the source's log.
	Moving Stage = "moving"
	// Returning is one that was cancelled, or whose target could not carry it out: the source owns the ranges again and still
	// needs the target's log.
	Returning Stage = "returning"
	// Done is one that has ended with the ranges at its target.
	Done Stage = "done"
	// Cancelled is one that somebody ended, with the ranges at its source.
	Cancelled Stage = "cancelled"
	// Failed is one that ended by itself, with the ranges where they were.
	Failed Stage = "failed"
)

// Ended tells whether nothing happens any more.
func (s Stage) Ended() bool { return s == Done || s == Cancelled || s == Failed }

// When a target asks for a record that a client waits for.
const (
	PriorityPullsAsync = "async"
	PriorityPullsSync  = "sync"
	PriorityPullsNone  = "none"
)

// How records move that are not in the source's memory.
const (
	// ColdIndirect sends word of them, and they follow when they are asked for, or in the background.
	ColdIndirect = "indirect"
	// ColdRead reads each of them for the pull that comes to it.
	ColdRead = "read"
	// ColdScan reads the source's whole log, segment by segment.
	ColdScan = "scan"
)

// When a target begins to serve.
const (
	OwnershipEarly = "early"
	OwnershipLate  = "late"
)

// MigrationOptions are how ranges are moved.
type MigrationOptions struct {
	PriorityPulls string `json:"priorityPulls,omitempty"` // async if empty
	// Ownership is early if empty: records follow it. Late is for comparison: the source serves until the
	// target has everything in all copies of its log. Nothing is sampled then, nor pulled first.
	Ownership string `json:"ownership,omitempty"`
	// Sample has the source send what its clients use most before it yields.
	Sample bool `json:"sample,omitempty"`
	// Cold is how records move that are not in the source's memory; indirect if empty.
	Cold string `json:"cold,omitempty"`
}

// Check says what is wrong with them.
func (o MigrationOptions) Check() error {
	switch o.PriorityPulls {
	case "", PriorityPullsAsync, PriorityPullsSync, PriorityPullsNone:
	default:
		return fmt.Errorf("there are no priority pulls %q: use async, sync or none", o.PriorityPulls)
	}
	switch o.Cold {
	case "", ColdIndirect, ColdRead, ColdScan:
	default:
		return fmt.Errorf("cold records cannot be moved by %q: use indirect, read or scan", o.Cold)
	}
	switch o.Ownership {
	case "", OwnershipEarly, OwnershipLate:
	default:
		return fmt.Errorf("there is no ownership %q: use early or late", o.Ownership)
	}
	return nil
}

// Indirect tells whether word of cold records is sent in their place. Late ownership knows none: nothing is served
// before everything is there.
func (o MigrationOptions) Indirect() bool {
	return (o.Cold == "" || o.Cold == ColdIndirect) && !o.late()
}

// late tells whether the source serves until the end.
func (o MigrationOptions) late() bool { return o.Ownership == OwnershipLate }

// MigrationRequest is what an operator or a balancer wants moved.
type MigrationRequest struct {
	Source, Target view.NodeID
	Ranges         view.Ranges
	Options        MigrationOptions
	Why            string
	By             string // ByBalancer, or empty for an operator
}

// ByBalancer is who asked for migrations that the balancer wants.
const ByBalancer = "balancer"

// Migration moves ranges from one living node to another. While it is Moving it is the
// lineage of the ranges: their records are in the source's log and in the target's from its floor on.
type Migration struct {
	ID      uint64           `json:"id"`
	Source  view.NodeID      `json:"source"`
	Target  view.NodeID      `json:"target"`
	Ranges  view.Ranges      `json:"ranges"`
	Options MigrationOptions `json:"options"`
	Stage   Stage            `json:"stage"`
	// SourceLog, TargetLog, From and FromSegment are known from Moving on, the second from Copying on. What the target's
	// log has of the ranges begins with batch From, in side segments with segment FromSegment.
	SourceLog   record.LogID     `json:"sourceLog,omitempty"`
	TargetLog   record.LogID     `json:"targetLog,omitempty"`
	From        record.BatchID   `json:"from,omitempty"`
	FromSegment record.SegmentID `json:"fromSegment,omitempty"`
	// Attempt numbers copies, of late ownership.
	Attempt int `json:"attempt,omitempty"`
	// Cancel asks the target to return the ranges.
	Cancel bool `json:"cancel,omitempty"`
	// By is who asked for it; empty for an operator.
	By string `json:"by,omitempty"`
	// Why it was asked for, and once it has ended why it did as it did.
	Why string `json:"why,omitempty"`
	// Returned is why the target returns the ranges by itself; empty if somebody has cancelled the migration.
	Returned  string    `json:"returned,omitempty"`
	Requested time.Time `json:"requested"`
	Began     time.Time `json:"began,omitzero"`
	// Closed is for how long nobody served the ranges when they changed hands, at the most, known once it is served; 0 with late ownership, or if the target was another life then.
	Closed time.Duration `json:"closed_ns,omitempty"`
	// Served is since when the target carries all load, and nothing but cold records is still to come.
	Served time.Time `json:"served,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	// Records and Bytes are what had come until it was served, or else until it ended, Cold how many records were still
	// to follow.
	Records int64 `json:"records,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	Cold    int64 `json:"cold,omitempty"`
	// Followed is how those came, known once it has ended.
	Followed Followed `json:"followed,omitzero"`
}

// Followed are how many cold records came to the target in which way.
type Followed struct {
	Shared int64 `json:"shared,omitempty"` // it read them in the shared tier
	Asked  int64 `json:"asked,omitempty"`  // the source read them for it
	Sent   int64 `json:"sent,omitempty"`   // the source's cleaner sent them
}

// Settling tells whether the target carries all load, and only cold records are still at the source.
func (m Migration) Settling() bool { return m.Stage == Moving && !m.Served.IsZero() }

// Remaining is how many cold records are still at the source, as far as is known: by the last progress that was told, or as
// it was when the target began to carry all load.
func (m Migration) Remaining(p *MigrationProgress) int64 {
	switch {
	case !m.Settling():
		return 0
	case p == nil || p.At.Before(m.Served):
		return m.Cold
	}
	return p.Remaining
}

// Moved tells whether the ranges are at the target and carried by it: it is done, or only cold records follow.
func (m Migration) Moved() bool { return m.Stage == Done || m.Settling() }

// MigrationStats are what a target got, and how many cold records it knows of that are still to come.
type MigrationStats struct {
	Records, Bytes, Cold int64
	Closed               time.Duration
	Served               time.Time // when all else was there
	Followed             Followed
}

// ErrNotYet is what a migration gets that must wait for another thing to end.
var ErrNotYet = errors.New("not yet")

// AllMigrations returns those that are known, the oldest first: all that have not ended,
// and the last that have.
func (s *Snapshot) AllMigrations() []Migration {
	return s.migrations(func(Migration) bool { return true })
}

// Incoming returns migrations that are moving to a node, the oldest first.
func (s *Snapshot) Incoming(n view.NodeID) []Migration {
	return s.migrations(func(m Migration) bool { return m.Target == n && m.Stage == Moving })
}

// Outgoing returns migrations that are moving away from a node, the oldest first.
func (s *Snapshot) Outgoing(n view.NodeID) []Migration {
	return s.migrations(func(m Migration) bool { return m.Source == n && m.Stage == Moving })
}

func (s *Snapshot) migrations(of func(Migration) bool) []Migration {
	all := slices.DeleteFunc(slices.Collect(maps.Values(s.Migrations)), func(m Migration) bool { return !of(m) })
	slices.SortFunc(all, func(a, b Migration) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Ready tells whether a migration that is wanted can begin. An error that is ErrNotYet says
// what it waits for; any other why it never can.
func (s *Snapshot) Ready(m Migration) error {
	if err := s.fits(m); err != nil {
		return err
	}
	for _, other := range s.AllMigrations() {
		if other.ID < m.ID && !other.Stage.Ended() && len(other.Ranges.Intersect(m.Ranges)) > 0 {
			return fmt.Errorf("%w: migration %d of the same places goes first", ErrNotYet, other.ID)
		}
	}
	switch {
	case !s.alive(m.Source):
		return fmt.Errorf("%w: %s is not alive", ErrNotYet, m.Source)
	case !s.alive(m.Target):
		return fmt.Errorf("%w: %s is not alive", ErrNotYet, m.Target)
	case s.Draining(m.Target):
		return fmt.Errorf("%s is being drained: move the ranges to a node that stays", m.Target)
	}
	if missing := m.Ranges.Subtract(s.Map.Ranges(m.Source)); len(missing) > 0 {
		return fmt.Errorf("%s does not own %s: look at the map again and move what it owns", m.Source, missing)
	}
	if early := s.arriving(m.Source).Intersect(m.Ranges); len(early) > 0 {
		return fmt.Errorf("%w: %s is still on its way to %s", ErrNotYet, early, m.Source)
	}
	if old := s.leaving(m.Target).Intersect(m.Ranges); len(old) > 0 {
		return fmt.Errorf("%w: %s has not yet dropped what it had of %s before", ErrNotYet, m.Target, old)
	}
	return s.room(m)
}

// mostBegun is how many migrations from or to a node are under way at a time: its death ends all of them in one step, and etcd
// takes 128 changes in one.
const mostBegun = 12

// room says whether a node of a migration that is wanted has enough others.
func (s *Snapshot) room(m Migration) error {
	if m.Stage != Wanted {
		return nil
	}
	for _, n := range []view.NodeID{m.Source, m.Target} {
		if len(s.begun(n)) >= mostBegun {
			return fmt.Errorf("%w: %s has part in %d migrations, and one of them must end first", ErrNotYet, n, mostBegun)
		}
	}
	return s.light(m)
}

// begun returns those from or to a node that are under way.
func (s *Snapshot) begun(n view.NodeID) []Migration {
	return s.migrations(func(m Migration) bool { return m.of(n) && m.Stage != Wanted && !m.Stage.Ended() })
}

// of tells whether a node has part in it.
func (m Migration) of(n view.NodeID) bool { return m.Source == n || m.Target == n }

// Awaited tells whether a migration that is wanted waits for the end of another one: for its places, or for the room that it takes.
func (s *Snapshot) Awaited(m Migration) bool {
	for _, other := range s.Migrations {
		if other.Stage != Wanted || other.ID == m.ID {
			continue
		}
		shares := other.of(m.Source) || other.of(m.Target)
		if len(other.Ranges.Intersect(m.Ranges)) > 0 || shares && s.room(other) != nil {
			return true
		}
	}
	return false
}

// leaving returns what a node's log has of an earlier time and has no floor for yet.
func (s *Snapshot) leaving(n view.NodeID) view.Ranges { return s.Logs[s.Nodes[n].Log].Leaving }

// Leaving returns what others have now that was a node's, and which its log has no floor for yet.
func (s *Snapshot) Leaving(n view.NodeID) view.Ranges { return s.leaving(n) }

// Unsettled returns places that a node's log does not have all records of, or that another's does not: its
// tombstones of them may be about records that only the other has, and must stay.
func (s *Snapshot) Unsettled(n view.NodeID) view.Ranges {
	ranges := s.arriving(n)
	for _, m := range s.Migrations {
		if m.Target == n && m.Stage == Returning {
			ranges = ranges.Union(m.Ranges)
		}
	}
	return ranges
}

// Holds returns all places whose records a node's log must keep: what it owns, and what it gave to
// others who need its log still.
func (s *Snapshot) Holds(n view.NodeID) view.Ranges {
	held := s.Map.Ranges(n)
	for _, m := range s.Migrations {
		if m.Source == n && m.Stage == Moving || m.Target == n && m.Stage == Returning {
			held = held.Union(m.Ranges)
		}
	}
	return held
}
