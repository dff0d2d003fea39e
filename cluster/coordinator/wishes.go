package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// wishes grants what operators asked for, refuses it, or says what it waits for.
func (c *coordinator) wishes(ctx context.Context, s *meta.Snapshot) error {
	var errs []error
	for n, w := range s.Wishes {
		if w.Refused != "" {
			continue
		}
		switch w.Act {
		case meta.Add:
			errs = append(errs, c.add(ctx, s, n, w))
		case meta.Drain:
			errs = append(errs, c.drain(ctx, s, n, w))
		case meta.Remove:
			errs = append(errs, c.remove(ctx, s, n, w))
		}
	}
	return errors.Join(errs...)
}

// add lets a node take part again and, if that is wished, has others move to it what makes its share like theirs.
func (c *coordinator) add(ctx context.Context, s *meta.Snapshot, n view.NodeID, w meta.Wish) error {
	if err := c.term.MarkDraining(ctx, n, false); err != nil {
		return err
	}
	switch {
	case !w.Share:
		return c.term.Granted(ctx, n, w)
	case s.Draining(n):
		return nil // The mark is gone; a snapshot without it follows.
	case !s.IsAlive(n):
		return c.term.Refuse(ctx, n, w, fmt.Sprintf("%s is not alive: start it first", n))
	}
	moves := s.Map.Join(n, slices.DeleteFunc(fit(s), func(o view.NodeID) bool { return o == n })...)
	return c.carryOut(ctx, s, n, w, errand{
		moves: moves, why: fmt.Sprintf("%s gets its share", n), mine: func(m meta.Migration) bool { return m.Target == n },
		done:   func() error { return c.term.Granted(ctx, n, w) },
		refuse: func(why string) error { return c.term.Refuse(ctx, n, w, why) },
	})
}

// drain marks the node, so that it is given nothing new, and has it move all to others while it serves. It
// is done when the node owns nothing and holds no replica that counts. The keys of one
// that dies meanwhile are recovered as any other's.
func (c *coordinator) drain(ctx context.Context, s *meta.Snapshot, n view.NodeID, w meta.Wish) error {
	owns := s.Map.Ranges(n)
	if !s.Draining(n) {
		c.Log.Info("a node is to be drained", "node", n)
		return c.term.BeginDrain(ctx, n, w, cannotDrain)
	}
	if !s.IsAlive(n) && (len(owns) > 0 || len(s.Arriving(n)) > 0) {
		return c.term.Defer(ctx, n, w, "others take the keys of "+string(n))
	}
	var moves []view.Move
	if heirs := fit(s); len(owns) > 0 && len(heirs) > 0 {
		var err error
		if moves, err = s.Map.Drain(n, heirs...); err != nil {
			return err
		}
	} else if len(owns) > 0 {
		return c.term.Defer(ctx, n, w, "there is no node that could take the keys of "+string(n))
	}
	return c.carryOut(ctx, s, n, w, errand{
		moves: moves, why: fmt.Sprintf("%s is drained", n), mine: func(m meta.Migration) bool { return m.Source == n },
		done:   func() error { return c.drained(ctx, s, n, w) },
		refuse: func(why string) error { return c.term.RefuseDrain(ctx, n, w, why) },
	})
}

// drained waits until nobody needs a node that owns nothing.
func (c *coordinator) drained(ctx context.Context, s *meta.Snapshot, n view.NodeID, w meta.Wish) error {
	if holders := holders(s, n); len(holders) > 0 {
		return c.term.Defer(ctx, n, w, fmt.Sprintf("%s have their copies made elsewhere", names(holders)))
	}
	return c.term.Granted(ctx, n, w)
}

// cannotDrain is why a node cannot be drained; empty if it can.
func cannotDrain(s *meta.Snapshot, n view.NodeID) string {
	owns, log := len(s.Map.Ranges(n)) > 0, s.Logs[s.Nodes[n].Log]
	others := slices.DeleteFunc(fit(s), func(o view.NodeID) bool { return o == n })
	waitFor, ok := s.Recoverable(log.ID, s.IsAlive)
	switch {
	case len(others) == 0:
		return fmt.Sprintf("%s cannot be drained: there is no other node to take what it has; start one first", n)
	case len(others) == 1 && s.Settings.Replicas > 1:
		return fmt.Sprintf("%s cannot be drained: %s would be alone, without copies of what it has; start another node first", n, others[0])
	case owns && log.Copies == 0 && s.IsAlive(n): // It moves what it has, and nobody needs copies.
	case owns && !ok && s.IsAlive(n):
		return fmt.Sprintf("%s cannot be drained yet: its log has too few copies that can be reached; look at `ostro cluster status` and try again", n)
	case owns && !ok:
		return fmt.Sprintf("%s is dead and cannot be drained: start %s first", n, names(waitFor))
	}
	return ""
}

// holders are nodes whose logs count on replicas at n: primaries, and dead ones that are being recovered.
// A recovery waits for n until it is lost, and that is known of n only while n is.
func holders(s *meta.Snapshot, n view.NodeID) (nodes []view.NodeID) {
	for _, l := range s.Logs {
		_, going := s.Recoveries[l.ID]
		if (going || inUse(s, l)) && l.Node != n && slices.Contains(l.Backups, n) {
			nodes = append(nodes, l.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// inUse tells whether a log may have something that is served, or that a migration needs. One whose node is dead otherwise
// has not: who waited for that one to make its copies elsewhere would wait for ever.
func inUse(s *meta.Snapshot, l meta.Log) bool {
	return !l.Retired && s.Nodes[l.Node].Log == l.ID && (s.IsAlive(l.Node) || slices.Contains(s.Dead(), l.Node))
}

// remove forgets a node that is dead and has nothing that anybody needs. One that is lost
// for good is waited for by nobody from now on.
func (c *coordinator) remove(ctx context.Context, s *meta.Snapshot, n view.NodeID, w meta.Wish) error {
	switch {
	case s.IsAlive(n):
		return c.term.Refuse(ctx, n, w, fmt.Sprintf("%s is alive: drain it with `ostro cluster drain %s`, stop it, then remove it", n, n))
	case w.Lost && !s.Lost(n):
		c.Log.Warn("a node was given up by an operator", "node", n)
		return c.term.MarkLost(ctx, n)
	case slices.Contains(s.Dead(), n):
		return c.term.Defer(ctx, n, w, "others take the keys of "+string(n))
	case c.recovering(s, n):
		return c.term.Defer(ctx, n, w, "the log of "+string(n)+" is being replayed")
	}
	if holders := holders(s, n); len(holders) > 0 {
		return c.term.Defer(ctx, n, w, fmt.Sprintf("%s have their copies made elsewhere", names(holders)))
	}
	c.Log.Info("a node is removed", "node", n)
	return c.term.Remove(ctx, n)
}

func (c *coordinator) recovering(s *meta.Snapshot, n view.NodeID) bool {
	for _, r := range s.Recoveries {
		if r.Node == n {
			return true
		}
	}
	return false
}
