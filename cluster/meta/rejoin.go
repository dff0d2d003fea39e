package meta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/cluster/view"
)

// A node that joins under a name which is known may have lost its disk since. Then it has neither the log
// of before nor the replicas, and nobody may take its answers for theirs.

// supersede ends the former log of a node that joins with another one. What the node owns
// is in the former one: while that is so, others must take it over first, or the node would serve an empty
// log in place of all that was acknowledged.
func (e *edit) supersede(n Node) error {
	former, is := e.seen.former(n)
	if !is {
		return nil
	}
	if err := e.seen.hasLog(n); err != nil {
		return err
	}
	e.need(keyMap)
	former.Retired = true
	return e.put(keyLog(former.ID), former)
}

// former is the log that etcd has for a node that joins with another one, while nobody has taken it over.
func (s *Snapshot) former(n Node) (l Log, is bool) {
	l, is = s.Logs[s.Nodes[n.ID].Log]
	return l, is && l.Node == n.ID && l.ID != n.Log && !l.Retired
}

// hasLog says that a node joins without the log that has what it owns.
func (s *Snapshot) hasLog(n Node) error {
	former, is := s.former(n)
	if !is || !slices.Contains(s.Dead(), n.ID) {
		return nil
	}
	return fmt.Errorf("%s %w %016x: it joins with an empty one as soon as others have taken over what was in it, from its copies; `ostro cluster status` tells how far they are",
		n.ID, ErrLogGone, uint64(former.ID))
}

// mourn puts a ghost in the place of all replicas that a node had before it lost them: one that never answers. A recovery that
// counts on enough answers then counts this one as missing, whatever the node says now. The node stays a
// backup, for it may have got new replicas by the time a primary looks.
func (e *edit) mourn(n Node) error {
	before, known := e.seen.Nodes[n.ID]
	if !known || before.Replicas == 0 || before.Replicas == n.Replicas {
		return nil
	}
	for id, l := range e.seen.Logs {
		_, going := e.seen.Recoveries[id]
		if l.Retired && !going || !slices.Contains(l.Backups, n.ID) {
			continue
		}
		l.Backups = append(slices.Clone(l.Backups), ghost(n.ID, before.Replicas))
		if err := e.put(keyLog(id), l); err != nil {
			return err
		}
	}
	return nil
}

// ghostMark is in no name of a node.
const ghostMark = "~"

func ghost(n view.NodeID, replicas uint64) view.NodeID {
	return view.NodeID(fmt.Sprintf("%s%s%08x", n, ghostMark, uint32(replicas)))
}

// IsGhost tells whether a backup stands for replicas that its node has lost.
func IsGhost(n view.NodeID) bool { return strings.Contains(string(n), ghostMark) }

// GhostOf is the node whose replicas a ghost stands for.
func GhostOf(n view.NodeID) view.NodeID {
	node, _, _ := strings.Cut(string(n), ghostMark)
	return view.NodeID(node)
}

// Absent are backups of a log that have no lease, ghosts among them. While there are some, a segment may
// have fewer copies than Copies: its primary excludes them once all have theirs elsewhere.
func (s *Snapshot) Absent(log Log) []view.NodeID {
	return slices.DeleteFunc(slices.Clone(log.Backups), s.alive)
}
