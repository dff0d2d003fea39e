package meta

import (
	"context"
	"errors"
	"fmt"
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

// MaxFirst is how many nodes the space is dealt out to: that is one step, each node has a condition in it, and etcd takes 128. Others
// get their share by migrations.
const MaxFirst = 120

// Begin deals the whole space out to living nodes, if nobody owns anything yet.
func (t *Term) Begin(ctx context.Context, nodes ...view.NodeID) error {
	if n := len(nodes); n > MaxFirst {
		return fmt.Errorf("the space is dealt out to %d nodes at most, not to %d: add the others later", MaxFirst, n)
	}
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

// Recover takes all ranges from a node whose lease has ended and gives them to heirs,
// ends its migrations, retires its log and notes the work to do, in one step. Only if many migrations of it have not begun, these
// end before.
func (t *Term) Recover(ctx context.Context, dead view.NodeID, heirs ...view.NodeID) (Recovery, error) {
	var r Recovery
	if err := t.forsake(ctx, dead); err != nil {
		return r, err
	}
	err := t.change(ctx, func(e *edit) error {
		var err error
		r, err = e.recover(dead, heirs)
		return err
	})
	return r, err
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
		case e.seen.migrates(n):
			return fmt.Errorf("others need the log of %s to end a migration: recover it first", n)
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
