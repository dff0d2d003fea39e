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
			errs = append(errs, c.add(ctx, n, w))
		case meta.Drain:
			errs = append(errs, c.drain(ctx, s, n, w))
		case meta.Remove:
			errs = append(errs, c.remove(ctx, s, n, w))
		}
	}
	return errors.Join(errs...)
}

func (c *coordinator) add(ctx context.Context, n view.NodeID, w meta.Wish) error {
	if err := c.term.MarkDraining(ctx, n, false); err != nil {
		return err
	}
	return c.term.Granted(ctx, n, w)
}

// drain marks the node; it gives its lease back by itself, and others take its keys. It is done
// when the node owns nothing and holds no replica that counts.
func (c *coordinator) drain(ctx context.Context, s *meta.Snapshot, n view.NodeID, w meta.Wish) error {
	owns := len(s.Map.Ranges(n)) > 0
	if !s.Draining(n) {
		if why := c.cannotDrain(s, n, owns); why != "" {
			return c.term.Refuse(ctx, n, w, why)
		}
		c.Log.Info("a node is drained", "node", n)
		return c.term.MarkDraining(ctx, n, true)
	}
	switch holders := holders(s, n); {
	case owns || len(s.Arriving(n)) > 0:
		return c.term.Defer(ctx, n, w, "others take the keys of "+string(n))
	case len(holders) > 0:
		return c.term.Defer(ctx, n, w, fmt.Sprintf("%s have their copies made elsewhere", names(holders)))
	}
	return c.term.Granted(ctx, n, w)
}

func (c *coordinator) cannotDrain(s *meta.Snapshot, n view.NodeID, owns bool) string {
	others := slices.DeleteFunc(fit(s), func(o view.NodeID) bool { return o == n })
	waitFor, ok := s.Recoverable(s.Nodes[n].Log, s.IsAlive)
	switch {
	case len(others) == 0:
		return fmt.Sprintf("%s cannot be drained: there is no other node to take what it has; start one first", n)
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
		if (!l.Retired || going) && l.Node != n && slices.Contains(l.Backups, n) {
			nodes = append(nodes, l.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
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
