package meta

import (
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// A node's death is one step in etcd, which has the map, the log of the dead node with its floors, each of its migrations that had
// begun, and all of their ranges and its own once more, as parts of the recovery. If that is more than etcd takes, the node is never
// recovered, and nobody serves its keys. So a migration that would make it so much waits, or must be a smaller one.

const (
	// mostStep is how many bytes a recovery may have, of the 1.5 MiB that etcd takes: what is left is for keys and conditions, and for
	// what recoveries of others bring about meanwhile.
	mostStep = 3<<19 - 64<<10
	// rangeBytes is a range in JSON, and spanBytes one of the map but for its owner's name.
	rangeBytes = 36
	spanBytes  = 58
)

// light says why a migration that is wanted must wait, or cannot begin, so that every node can still be recovered. Those with late
// ownership that were begun change the map only when they end.
func (s *Snapshot) light(m Migration) error {
	copying := s.migrations(func(o Migration) bool { return o.Stage == Copying })
	most := 2*s.raw.total() + m.growsMost()
	for _, o := range copying {
		most += o.growsMost()
	}
	if most <= mostStep {
		return nil // Whatever of all that is whose.
	}
	mine, coming := s.growthBy(m), make([]growth, len(copying))
	for i, o := range copying {
		coming[i] = s.growthBy(o)
	}
	for id := range s.Nodes {
		more := mine.of(id)
		if more == 0 {
			continue // It may be too large already: that is not for this one to wait for.
		}
		lasting, passing := s.recoveryBytes(id)
		if lasting > mostStep && mine.cuts == 0 {
			continue // So it is, and what cuts nothing is how it becomes smaller.
		}
		for _, g := range coming {
			passing += g.of(id)
		}
		switch bytes := (lasting + passing + more) >> 10; {
		case lasting+more > mostStep:
			return fmt.Errorf("etcd would not take a recovery of %s, of %d KiB: move fewer ranges at a time, or ranges back to their neighbours' owners first", id, bytes)
		case lasting+passing+more > mostStep:
			return fmt.Errorf("%w: etcd would not take a recovery of %s, of %d KiB, before other migrations of it have ended, or its log has forgotten what they have left there", ErrNotYet, id, bytes)
		}
	}
	return nil
}

// growth is what a migration adds to recoveries, and how many ranges of the map it cuts.
type growth struct {
	Migration
	cuts int
}

func (s *Snapshot) growthBy(m Migration) growth { return growth{m, s.cuts(m)} }

// of is how many bytes that of a node grows by.
func (g growth) of(id view.NodeID) int {
	n, more := len(g.Ranges), g.cuts*g.span()
	switch id {
	case g.Source: // Itself and its part, and its ranges are none of the node's other ones.
		more += rangeBytes * (n + g.cuts)
	case g.Target: // Itself, its part, and a floor.
		more += rangeBytes * 3 * n
	}
	return more
}

// growsMost is more than any recovery grows by.
func (m Migration) growsMost() int { return len(m.Ranges) * (3*rangeBytes + 2*m.span()) }

// span is how many bytes a range of it has in the map.
func (m Migration) span() int { return spanBytes + max(len(m.Source), len(m.Target)) }

// fitting is how many of the first of some migrations there is room for in a step: n at most, of so many bytes together.
func (s *Snapshot) fitting(list []Migration, n, bytes int) int {
	for i, m := range list[:min(len(list), n)] {
		if bytes -= s.raw.bytes(keyMigration(m.ID)); bytes < 0 {
			return i
		}
	}
	return min(len(list), n)
}

// recoveryBytes is about how many bytes a recovery of a node would have: what lasts while the map does, and what passes by itself.
func (s *Snapshot) recoveryBytes(n view.NodeID) (lasting, passing int) {
	own, logs := len(s.Map.Ranges(n)), []string{keyLog(s.Nodes[n].Log)}
	for _, m := range s.begun(n) {
		passing += s.raw.bytes(keyMigration(m.ID)) + rangeBytes*len(m.Ranges)
		switch {
		case m.Stage == Copying: // It comes to nothing, and leaves its target.
			logs, passing = append(logs, keyLog(m.TargetLog)), passing+rangeBytes*len(m.Ranges)
		case m.Stage == Moving && m.Target == n:
			own -= len(m.Ranges) // They are no heir's, but the source's.
		}
	}
	slices.Sort(logs)
	for _, key := range slices.Compact(logs) {
		passing += s.raw.bytes(key)
	}
	for r := range s.Replays() {
		if slices.ContainsFunc(r.Parts, func(p Part) bool { return p.Heir == n && !p.Done }) {
			passing += s.raw.bytes(r.key())
		}
	}
	return s.raw.bytes(keyMap) + rangeBytes*(max(0, own)+MaxHeirs), passing
}
