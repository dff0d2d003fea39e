package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/clock"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Member is a node that has joined. All it writes holds only while its lease does.
type Member struct {
	writer
	Node  Node
	Lease *Lease
	// Joined is the metadata after the node joined. What it says of the node's
	// ranges holds: nobody gives them away while the node is alive. Who follows the metadata is sure to come to the
	// revision of Token, and not to this one's, which may be that of a write elsewhere in etcd.
	Joined *Snapshot
}

// Configure writes the cluster's settings, unless it has some, and returns what it has. Of those only the number of databases changes:
// it is the highest that any node was told, for in a lower one there may be no room for what a node has already.
func (s *Store) Configure(ctx context.Context, wanted Settings) (Settings, error) {
	if wanted.Replicas < 1 || wanted.LeaseMillis < 1000 || wanted.SegmentBytes < 1 {
		return Settings{}, fmt.Errorf("these settings cannot work: %+v: want 1 replica, a lease of 1000 ms and a segment of some bytes at least", wanted)
	}
	var has Settings
	_, _, err := s.change(ctx, nil, func(e *edit) error {
		if has = wanted; e.seen.raw.modified(keySettings) != 0 {
			has = e.seen.Settings
			has.Databases = max(has.Databases, wanted.Databases)
			if has == e.seen.Settings {
				return nil
			}
		}
		return e.put(keySettings, has)
	})
	return has, err
}

// Join makes a node a living member, until it leaves or its lease is lost.
func (s *Store) Join(ctx context.Context, n Node) (*Member, error) {
	if err := n.ID.Check(); err != nil {
		return nil, err
	}
	before, err := s.Read(ctx)
	if err != nil {
		return nil, err
	}
	if before.Settings == (Settings{}) {
		return nil, errors.New("the cluster has no settings yet: configure it before the first node joins")
	}
	if err := errors.Join(before.absent(n), before.hasLog(n)); err != nil {
		return nil, err // Whoever waits asks again and again, and each lease costs etcd two steps.
	}
	lease, err := grant(ctx, &leases{Client: s.client}, before.Settings.Lease(), clock.SinceBoot)
	if err != nil {
		return nil, err
	}
	m, err := s.enter(ctx, n, lease)
	if err != nil {
		_ = lease.Close(ctx)
		return nil, err
	}
	return m, nil
}

// absent says who else has a node's name.
func (s *Snapshot) absent(n Node) error {
	if s.alive(n.ID) {
		return fmt.Errorf("%s %w, at %s: choose another name, or wait for its lease to end", n.ID, ErrPresent, s.Nodes[n.ID].Address)
	}
	return nil
}

func (s *Store) enter(ctx context.Context, n Node, lease *Lease) (*Member, error) {
	_, revision, err := s.change(ctx, nil, func(e *edit) error {
		if err := e.seen.absent(n); err != nil {
			return err
		}
		for _, step := range []func(Node) error{e.claimLog, e.supersede, e.mourn, e.forgetServed} {
			if err := step(n); err != nil {
				return err
			}
		}
		if err := e.put(keyNode(n.ID), n); err != nil {
			return err
		}
		// Who comes back was not lost.
		if err := e.mark(n.ID, func(m *Marks) { m.Lost = false }); err != nil {
			return err
		}
		return e.put(keyAlive(n.ID), Presence{Started: time.Now().UTC()}, clientv3.WithLease(lease.id))
	})
	if err != nil {
		return nil, err
	}
	joined, err := s.Read(ctx)
	if err != nil {
		return nil, err
	}
	f := fence{keyAlive(n.ID), revision, ErrLeaseLost}
	return &Member{writer{s, f}, n, lease, joined}, s.stands(&f, joined)
}

// Leave ends the membership of a node that serves nothing any more. Others hear so, and need not wait for its clock.
func (m *Member) Leave(ctx context.Context) error {
	m.Lease.lose()
	err := m.change(ctx, func(e *edit) error {
		n := m.Node
		n.Left = true
		return e.put(keyNode(n.ID), n)
	})
	return errors.Join(err, m.Lease.Close(ctx))
}

// claimLog makes the node's log known, if it may serve from it.
func (e *edit) claimLog(n Node) error {
	l, ok := e.seen.Logs[n.Log]
	switch {
	case !ok:
		// It has no segments, so each of them has all its copies. If the node dies before it wrote any, others take
		// its ranges over and need nobody for that.
		return e.put(keyLog(n.Log), Log{ID: n.Log, Node: n.ID, ReplicaVersion: 1, Copies: max(0, e.seen.Settings.Replicas-1)})
	case l.Node != n.ID:
		return fmt.Errorf("the log %016x belongs to %s, not to %s: each node needs a data directory of its own", uint64(n.Log), l.Node, n.ID)
	case l.Retired:
		return fmt.Errorf("others have taken over the log %016x while %s was away: start it with an empty data directory", uint64(n.Log), n.ID)
	}
	e.need(keyLog(n.Log))
	return nil
}

// RaiseReplicaVersion makes all open replicas of the node's log that have an older
// version stale, and returns the new one.
func (m *Member) RaiseReplicaVersion(ctx context.Context) (uint64, error) {
	var raised Log
	err := m.change(ctx, func(e *edit) error {
		raised = e.seen.Logs[m.Node.Log]
		raised.ReplicaVersion++
		return e.put(keyLog(m.Node.Log), raised)
	})
	return raised.ReplicaVersion, err
}

// Share is ranges of a log that an heir replays.
type Share struct {
	Log    record.LogID
	Ranges view.Ranges
	// Return is the migration that is undone, 0 if the log's node is dead.
	Return uint64
}

// Serving says that this node has replayed its parts of dead logs, as far as they lie in the shares, and
// serves them. It has no copies of them yet: the logs stay.
func (m *Member) Serving(ctx context.Context, shares ...Share) error {
	return m.change(ctx, func(e *edit) error {
		for _, s := range merged(shares) {
			r, ok := e.seen.Replay(s)
			if !ok {
				return fmt.Errorf("there is no recovery of the log %016x: it has ended", uint64(s.Log))
			}
			was := func(p Part) bool { return p.Heir == m.Node.ID && !p.Done && !p.Served && s.Ranges.Covers(p.Ranges) }
			if !slices.ContainsFunc(r.Parts, was) {
				continue
			}
			r.Parts = slices.Clone(r.Parts)
			for i := range r.Parts {
				r.Parts[i].Served = r.Parts[i].Served || was(r.Parts[i])
			}
			if err := e.put(r.key(), r); err != nil {
				return err
			}
		}
		return nil
	})
}

// forgetServed takes back that a node which joins serves parts of dead logs: it may have to replay them again.
func (e *edit) forgetServed(n Node) error {
	for r := range e.seen.Replays() {
		was := func(p Part) bool { return p.Heir == n.ID && !p.Done && p.Served }
		if !slices.ContainsFunc(r.Parts, was) {
			continue
		}
		r.Parts = slices.Clone(r.Parts)
		for i := range r.Parts {
			r.Parts[i].Served = r.Parts[i].Served && !was(r.Parts[i])
		}
		if err := e.put(r.key(), r); err != nil {
			return err
		}
	}
	return nil
}

// Recovered says that this node has replayed and replicated its parts of dead logs, as
// far as they lie in the shares, all in one step: what several logs have of a place is
// replayed together, and so must not be told apart afterwards.
func (m *Member) Recovered(ctx context.Context, shares ...Share) error {
	return m.change(ctx, func(e *edit) error {
		for _, s := range merged(shares) {
			if err := e.recovered(m.Node.ID, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// merged makes one share of all that are of the same replay.
func merged(shares []Share) (all []Share) {
	for _, s := range shares {
		i := slices.IndexFunc(all, func(o Share) bool { return o.Log == s.Log && o.Return == s.Return })
		if i < 0 {
			all = append(all, s)
		} else {
			all[i].Ranges = all[i].Ranges.Union(s.Ranges)
		}
	}
	return all
}

func (e *edit) recovered(heir view.NodeID, s Share) error {
	r, ok := e.seen.Replay(s)
	if !ok {
		return fmt.Errorf("there is no recovery of the log %016x: it has ended", uint64(s.Log))
	}
	changed := false
	r.Parts = slices.Clone(r.Parts)
	for i, p := range r.Parts {
		if p.Heir == heir && !p.Done && s.Ranges.Covers(p.Ranges) {
			r.Parts[i].Done, changed = true, true
		}
	}
	switch {
	case !changed:
		return nil
	case r.Return != 0 && r.Done():
		return e.returned(r)
	}
	return e.put(r.key(), r)
}

// returned ends a return that all heirs have their parts of.
func (e *edit) returned(r Recovery) error {
	e.delete(r.key())
	m := e.seen.Migrations[r.Return]
	if err := e.leave(r.Log, m.Ranges); err != nil {
		return err
	}
	if m.Returned != "" {
		return e.end(m, Failed, m.Returned+"; what it had was returned")
	}
	return e.end(m, Cancelled, "its target returned what it had")
}

func (r Recovery) key() string {
	if r.Return != 0 {
		return keyReturn(r.Return)
	}
	return keyRecovery(r.Log)
}
