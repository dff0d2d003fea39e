package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// deaths begins the recovery of all owners that have died and whose logs can be found.
func (c *coordinator) deaths(ctx context.Context, s *meta.Snapshot) error {
	dead := s.Dead()
	c.forget(ctx, s, dead)
	if dead = c.surely(s, dead); len(dead) == 0 {
		return nil
	}
	if c.patient() {
		c.again = true
		return nil
	}
	var errs []error
	for _, n := range dead {
		errs = append(errs, c.death(ctx, s, n))
	}
	return errors.Join(errs...)
}

// surely are those that know it themselves by now, if they run.
func (c *coordinator) surely(s *meta.Snapshot, dead []view.NodeID) (known []view.NodeID) {
	maps.DeleteFunc(c.missed, func(n view.NodeID, _ time.Time) bool { return !slices.Contains(dead, n) })
	now := c.now()
	for _, n := range dead {
		since, seen := c.missed[n]
		if !seen {
			since = now
			c.missed[n] = now
		}
		switch left := c.Grace - now.Sub(since); {
		case left <= 0 || s.Nodes[n].Left:
			known = append(known, n)
		case c.soon == 0 || left < c.soon:
			c.soon = left
		}
	}
	return known
}

// patient tells whether nodes that are away may only be late: the cluster starts, and they were not there since.
func (c *coordinator) patient() bool {
	select {
	case <-c.whole:
		return false
	default:
		return c.now().Before(c.patientUntil)
	}
}

// death begins the recovery of one node, or says what it waits for.
func (c *coordinator) death(ctx context.Context, s *meta.Snapshot, n view.NodeID) error {
	log := s.Nodes[n].Log
	heirs, late := heirsOf(s, n)
	switch {
	case len(heirs) == 0 && len(late) > 0:
		c.again = true
		return c.tell(ctx, log, fmt.Sprintf("%s is dead and its recovery waits for %s to drop what it had of the same keys before", n, names(late)))
	case len(heirs) == 0:
		c.again = true
		return c.tell(ctx, log, fmt.Sprintf("%s is dead and there is no node that could take its keys: start one, or `ostro cluster add` one that is draining", n))
	}
	found := c.ask(ctx, s, log, false)
	if waitFor, ok := s.Recoverable(log, s.Heard(found.Answered)); !ok {
		c.again = true
		return c.tell(ctx, log, fmt.Sprintf("%s is dead and its recovery waits for one of %s: start them, or say `ostro cluster remove NODE --lost` of those that never come back", n, names(waitFor)))
	}
	if lacking := found.Lacking(); len(lacking) > 0 && !s.Lost(n) {
		c.again = true
		return c.tell(ctx, log, fmt.Sprintf("%s is dead and nobody has a copy of %d of its segments: start it, or say `ostro cluster remove %s --lost` to go on without them", n, len(lacking), n))
	}
	r, err := c.term.Recover(ctx, n, heirs...)
	if err != nil {
		return fmt.Errorf("recover %s: %w", n, err)
	}
	c.Log.Warn("a node is dead: others take its keys", "node", n, "heirs", len(r.Parts), "bytes", found.Bytes())
	return c.tell(ctx, log, "fencing")
}

// heirsOf are nodes that can take what a dead one owned. Late are those that could if they had dropped
// what their logs have of the same places from an earlier time.
func heirsOf(s *meta.Snapshot, dead view.NodeID) (heirs, late []view.NodeID) {
	owned := s.Map.Ranges(dead)
	for _, n := range fit(s) {
		if len(s.Unfit(n).Intersect(owned)) > 0 {
			late = append(late, n)
		} else {
			heirs = append(heirs, n)
		}
	}
	return heirs[:min(len(heirs), meta.MaxHeirs)], late
}

// ask surveys a log: those who live, and if that is not enough its backups that have
// no lease, too, for they may run nevertheless. These are asked last because they mostly do not, and
// whoever waits for them waits in vain.
func (c *coordinator) ask(ctx context.Context, s *meta.Snapshot, log record.LogID, fence bool) Findings {
	owner := s.Logs[log].Node
	nodes := slices.DeleteFunc(s.Living(), func(n view.NodeID) bool { return n == owner && s.Nodes[n].Log == log })
	found := c.Survey.Survey(ctx, log, nodes, fence)
	if _, enough := s.Recoverable(log, s.Heard(found.Answered)); enough {
		return found
	}
	for _, b := range s.Logs[log].Backups {
		if _, known := s.Nodes[b]; known && !s.IsAlive(b) {
			nodes = append(nodes, b)
		}
	}
	return c.Survey.Survey(ctx, log, nodes, fence)
}

// tell shows the stage of a recovery in etcd and in the log, once.
func (c *coordinator) tell(ctx context.Context, log record.LogID, stage string) error {
	if c.told[log] == stage {
		return nil
	}
	c.Log.Info("recovery", "log", fmt.Sprintf("%016x", uint64(log)), "stage", stage)
	now := c.now().UTC()
	if err := c.term.Tell(ctx, meta.Progress{Log: log, Stage: stage, Began: now, At: now}); err != nil {
		return err
	}
	c.told[log] = stage
	return nil
}

// forget takes back what was told of nodes that came back by themselves.
func (c *coordinator) forget(ctx context.Context, s *meta.Snapshot, dead []view.NodeID) {
	waiting := map[record.LogID]bool{}
	for _, n := range dead {
		waiting[s.Nodes[n].Log] = true
	}
	for log := range s.Progress {
		if _, going := s.Recoveries[log]; !going && !waiting[log] {
			delete(c.told, log)
			if err := c.term.Hush(ctx, log); err != nil {
				c.again = true
			}
		}
	}
}

func names(nodes []view.NodeID) string {
	text := make([]string, len(nodes))
	for i, n := range nodes {
		text[i] = string(n)
	}
	return strings.Join(text, ", ")
}
