package meta

import (
	"context"
	"fmt"

	"github.com/ostrodb/ostro/cluster/view"
)

// Marks are what an operator has decided about a node.
type Marks struct {
	// Draining: the node gives all it has away, and is given nothing new.
	Draining bool `json:"draining,omitempty"`
	// Lost: the node will never come back, nor what only it had. Nobody waits for it.
	Lost bool `json:"lost,omitempty"`
}

// Draining tells whether a node shall be given nothing new.
func (s *Snapshot) Draining(n view.NodeID) bool { return s.Marks[n].Draining }

// Lost tells whether an operator has given a node up.
func (s *Snapshot) Lost(n view.NodeID) bool { return s.Marks[n].Lost }

// mark changes a node's marks, if that is a change.
func (e *edit) mark(n view.NodeID, f func(*Marks)) error {
	was := e.seen.Marks[n]
	is := was
	f(&is)
	switch is {
	case was:
		return nil
	case Marks{}:
		e.delete(keyMarks(n))
		return nil
	}
	return e.put(keyMarks(n), is)
}

func (t *Term) mark(ctx context.Context, n view.NodeID, f func(*edit) error) error {
	return t.change(ctx, func(e *edit) error {
		if _, known := e.seen.Nodes[n]; !known {
			return fmt.Errorf("there is no node %s: `ostro cluster status` lists them", n)
		}
		return f(e)
	})
}

// MarkDraining says whether a node gives all away.
func (t *Term) MarkDraining(ctx context.Context, n view.NodeID, draining bool) error {
	return t.mark(ctx, n, func(e *edit) error {
		return e.mark(n, func(m *Marks) { m.Draining = draining })
	})
}

// MarkLost gives a node up that is not alive. If it ever joins again, the mark is gone.
func (t *Term) MarkLost(ctx context.Context, n view.NodeID) error {
	return t.mark(ctx, n, func(e *edit) error {
		if e.seen.alive(n) {
			return fmt.Errorf("%s is alive: it is not lost; drain it if it shall go", n)
		}
		e.need(keyAlive(n))
		return e.mark(n, func(m *Marks) { m.Lost = true })
	})
}
