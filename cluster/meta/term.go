package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Term is the time for which a member is coordinator. All it writes holds only in that time.
type Term struct {
	writer
	session  *concurrency.Session
	election *concurrency.Election
}

// Campaign waits until the member is coordinator. Its wish lives by its lease, so
// a coordinator that dies makes room when its lease ends.
func (m *Member) Campaign(ctx context.Context) (*Term, error) {
	session, err := concurrency.NewSession(m.store.client, concurrency.WithLease(m.Lease.id))
	if err != nil {
		return nil, fmt.Errorf("stand for coordinator: %w", err)
	}
	dir := m.store.prefix + strings.TrimSuffix(dirCoordinator, "/")
	election := concurrency.NewElection(session, dir)
	t := &Term{writer{store: m.store}, session, election}
	if err := t.win(ctx, m); err != nil {
		// It may stand, or have won, all the same: nobody shall wait for a coordinator that does nothing. The election
		// itself has forgotten its key if the answer to its first request was lost.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = m.store.client.Delete(last, fmt.Sprintf("%s/%x", dir, m.Lease.id))
		session.Orphan()
		return nil, fmt.Errorf("stand for coordinator: %w", err)
	}
	return t, nil
}

func (t *Term) win(ctx context.Context, m *Member) error {
	err := rpctypes.ErrCompacted
	// Who waits for long may find that etcd has compacted what it waited for: it looks again.
	for errors.Is(err, rpctypes.ErrCompacted) {
		err = t.election.Campaign(ctx, string(m.Node.ID))
	}
	if err != nil {
		return err
	}
	t.fence = fence{strings.TrimPrefix(t.election.Key(), t.store.prefix), t.election.Rev(), ErrDeposed}
	// All before us are gone; so may we be, if our lease ended while we waited.
	seen, err := t.store.Read(ctx)
	if err != nil {
		return err
	}
	if t.store.stands(&t.fence, seen) != nil {
		return ErrLeaseLost
	}
	return nil
}

// Done is closed when the lease behind the term is no longer renewed. The term may have ended
// earlier; its writes then fail.
func (t *Term) Done() <-chan struct{} { return t.session.Done() }

// Resign ends the term and lets another be coordinator. The member's lease stays.
func (t *Term) Resign(ctx context.Context) error {
	err := t.election.Resign(ctx)
	t.session.Orphan()
	if err != nil {
		return fmt.Errorf("resign as coordinator: %w", err)
	}
	return nil
}

// Begin deals the whole space out to living nodes, if nobody owns anything yet.
func (t *Term) Begin(ctx context.Context, nodes ...view.NodeID) error {
	return t.change(ctx, func(e *edit) error {
		if !e.seen.Map.IsZero() {
			return errors.New("the space is dealt out already: move ranges instead")
		}
		first, err := view.Initial(nodes...)
		if err != nil {
			return err
		}
		if err := e.needAlive(nodes); err != nil {
			return err
		}
		return e.putMap(first)
	})
}

func (e *edit) needAlive(nodes []view.NodeID) error {
	for _, n := range nodes {
		if !e.seen.alive(n) {
			return fmt.Errorf("%s is not alive: choose nodes that are", n)
		}
		e.need(keyAlive(n))
	}
	return nil
}

// Cancel gives the ranges of an unfinished migration back to its source. The source serves
// them only after the target has said that it no longer does.
func (t *Term) Cancel(ctx context.Context, l Lineage) error {
	return t.change(ctx, func(e *edit) error {
		if err := e.drop(l); err != nil {
			return err
		}
		back, err := returned(e.seen.Map, l)
		if err != nil {
			return err
		}
		return e.putMap(back)
	})
}

// returned is the map after what a target got by a migration went back.
func returned(m view.Map, l Lineage) (view.Map, error) {
	held := m.Ranges(l.Target).Intersect(l.Ranges)
	if len(held) == 0 {
		return m, nil
	}
	return m.Apply(view.Move{Ranges: held, From: l.Target, To: l.Source})
}

// Recover takes all ranges from a node whose lease has ended and gives them to heirs,
// ends its migrations, retires its log and notes the work to do, in one step.
func (t *Term) Recover(ctx context.Context, dead view.NodeID, heirs ...view.NodeID) (Recovery, error) {
	var r Recovery
	err := t.change(ctx, func(e *edit) error {
		var err error
		r, err = e.recover(dead, heirs)
		return err
	})
	return r, err
}

func (e *edit) recover(dead view.NodeID, heirs []view.NodeID) (Recovery, error) {
	n, known := e.seen.Nodes[dead]
	switch {
	case !known:
		return Recovery{}, fmt.Errorf("there is no node %s", dead)
	case e.seen.alive(dead):
		return Recovery{}, fmt.Errorf("%s is alive: its ranges can be moved, not recovered", dead)
	case e.seen.Logs[n.Log].Retired:
		return Recovery{}, fmt.Errorf("%s was recovered before", dead)
	}
	e.need(keyAlive(dead))
	if err := e.needAlive(heirs); err != nil {
		return Recovery{}, err
	}
	r := Recovery{Node: dead, Log: n.Log}
	before, err := e.endMigrations(&r)
	if err != nil {
		return Recovery{}, err
	}
	next, moves, err := before.Recover(dead, heirs...)
	if err != nil {
		return Recovery{}, err
	}
	for _, m := range moves {
		r.Parts = append(r.Parts, Part{Heir: m.To, Ranges: m.Ranges})
	}
	return r, e.writeRecovery(r, moves, next)
}

// endMigrations returns the map after all migrations of r's node were undone.
func (e *edit) endMigrations(r *Recovery) (view.Map, error) {
	m := e.seen.Map
	for _, l := range e.seen.Lineages {
		if l.Source != r.Node && l.Target != r.Node {
			continue
		}
		if err := e.drop(l); err != nil {
			return m, err
		}
		if held := m.Ranges(l.Target).Intersect(l.Ranges); l.Target == r.Node && len(held) > 0 {
			// The source has its own records still and replays what the target added.
			r.Parts = append(r.Parts, Part{Heir: l.Source, Ranges: held})
		}
		var err error
		if m, err = returned(m, l); err != nil {
			return m, err
		}
		r.Lineages = append(r.Lineages, l)
		if l.Source == r.Node && e.seen.alive(l.Target) && !slices.Contains(r.Yielding, l.Target) {
			r.Yielding = append(r.Yielding, l.Target)
		}
	}
	return m, nil
}

func (e *edit) writeRecovery(r Recovery, moves []view.Move, next view.Map) error {
	retired := e.seen.Logs[r.Log]
	retired.Retired = true
	if err := e.put(keyLog(r.Log), retired); err != nil {
		return err
	}
	// What the dead node was to replay for others, its heirs replay.
	for log, other := range e.seen.Recoveries {
		if slices.ContainsFunc(other.Parts, func(p Part) bool { return p.Heir == r.Node && !p.Done }) {
			if err := e.put(keyRecovery(log), other.inherited(r.Node, moves)); err != nil {
				return err
			}
		}
	}
	if err := e.put(keyRecovery(r.Log), r); err != nil {
		return err
	}
	return e.putMap(next)
}

// Finish forgets a recovery whose heirs all have their parts.
func (t *Term) Finish(ctx context.Context, log record.LogID) error {
	return t.change(ctx, func(e *edit) error {
		r, ok := e.seen.Recoveries[log]
		switch {
		case !ok:
			return nil
		case !r.Done():
			return fmt.Errorf("the recovery of %s goes on: wait for its heirs", r.Node)
		}
		e.delete(keyRecovery(log))
		for by := range e.seen.Progress[log] {
			e.delete(keyProgress(log, by))
		}
		return nil
	})
}

// SetPlan says what the heirs of a recovery replay. The first plan stays; the one that holds is returned.
func (t *Term) SetPlan(ctx context.Context, log record.LogID, p Plan) (Plan, error) {
	err := t.change(ctx, func(e *edit) error {
		r, ok := e.seen.Recoveries[log]
		switch {
		case !ok:
			return fmt.Errorf("there is no recovery of the log %016x: it has ended", uint64(log))
		case r.Plan != nil:
			p = *r.Plan
			return nil
		}
		r.Plan = &p
		return e.put(keyRecovery(log), r)
	})
	return p, err
}

// Remove forgets a node that is not alive and owns nothing, and retires its log. Its view number stays.
func (t *Term) Remove(ctx context.Context, n view.NodeID) error {
	return t.change(ctx, func(e *edit) error {
		switch {
		case e.seen.alive(n):
			return fmt.Errorf("%s is alive: stop it first", n)
		case len(e.seen.Map.Ranges(n)) > 0:
			return fmt.Errorf("%s owns ranges: recover or drain it first", n)
		case e.seen.raw.modified(keyNode(n)) == 0:
			return fmt.Errorf("there is no node %s", n)
		}
		e.need(keyAlive(n))
		e.need(keyMap)
		if l := e.seen.Logs[e.seen.Nodes[n].Log]; l.Node == n && !l.Retired {
			l.Retired = true // Nothing of it is owned, so nobody needs its copies.
			if err := e.put(keyLog(l.ID), l); err != nil {
				return err
			}
		}
		e.delete(keyNode(n))
		for _, key := range []string{keyMarks(n), keyWish(n)} {
			if e.seen.raw.modified(key) != 0 {
				e.delete(key)
			}
		}
		return nil
	})
}
