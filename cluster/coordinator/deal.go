package coordinator

import (
	"context"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// deal gives the space to the first nodes of a cluster, once as many are there
// as the settings want, or no other has come for a while. Of very many the largest get it.
func (c *coordinator) deal(ctx context.Context, s *meta.Snapshot) error {
	nodes := fit(s)
	if names := fmt.Sprint(nodes); names != c.livingNodes {
		c.livingNodes, c.livingSince = names, c.now()
	}
	switch wanted := s.Settings.MinNodes; {
	case len(nodes) == 0,
		wanted > 0 && len(nodes) < wanted,
		wanted == 0 && c.now().Sub(c.livingSince) < c.Quiet:
		c.again = true
		return nil
	}
	first := nodes[:min(len(nodes), meta.MaxFirst)]
	if err := c.term.Begin(ctx, first...); err != nil {
		return err
	}
	c.Log.Info("the keys were dealt out", "nodes", len(first))
	if more := len(nodes) - len(first); more > 0 {
		c.Log.Warn("some nodes own nothing yet, for there are very many: give each its share with `ostro cluster add`", "nodes", more)
	}
	_, err := c.Cache.Wait(ctx, func(s *meta.Snapshot) bool { return !s.Map.IsZero() })
	return err
}

// fit returns nodes that may be given ranges, the largest first.
func fit(s *meta.Snapshot) []view.NodeID {
	nodes := slices.DeleteFunc(s.Living(), s.Draining)
	slices.SortStableFunc(nodes, func(a, b view.NodeID) int {
		switch x, y := s.Nodes[a].CapacityBytes, s.Nodes[b].CapacityBytes; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return nodes
}
