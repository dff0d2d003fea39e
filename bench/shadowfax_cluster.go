package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// shadowCluster is a cluster of two nodes between which ownership goes to and fro.
type shadowCluster struct {
	*cluster
	*watcher
	source, target devNode
}

// startPair starts one whose nodes have these settings, key=value.
func (x *shadow) startPair(ctx context.Context, settings ...string) (*shadowCluster, error) {
	program, err := x.f.program()
	if err != nil {
		return nil, err
	}
	args := []string{"--lease", steadyLease, "--log-level", "warn"}
	for _, s := range append(settings, settingsOf(x.f.ostroArgs)...) {
		args = append(args, "--set", s)
	}
	c, err := startCluster(ctx, program, 2, args...)
	if err != nil {
		return nil, err
	}
	w, err := watch(ctx, c.Etcd)
	if err != nil {
		c.stop()
		return nil, err
	}
	return &shadowCluster{c, w, c.Nodes[0], c.Nodes[1]}, nil
}

// settingsOf turns flags of `ostro server` into settings of `ostro cluster dev`.
func settingsOf(flags string) (all []string) {
	words := strings.Fields(flags)
	for i := 0; i < len(words); i++ {
		word := strings.TrimPrefix(words[i], "--")
		if !strings.Contains(word, "=") && i+1 < len(words) {
			i++
			word += "=" + words[i]
		}
		all = append(all, word)
	}
	return all
}

func (c *shadowCluster) end() {
	c.watcher.close()
	c.cluster.stop()
}

// give moves ranges, if there are any, that nobody uses.
func (c *shadowCluster) give(ctx context.Context, from, to devNode, ranges view.Ranges) error {
	if len(ranges) == 0 {
		return nil
	}
	return c.migrate(ctx, view.NodeID(from.ID), view.NodeID(to.ID), ranges, meta.MigrationOptions{}).err
}

// owned is what a node has, as far as the cluster's metadata tell.
func (c *shadowCluster) owned(n devNode) view.Ranges {
	return c.cache.Snapshot().Map.Ranges(view.NodeID(n.ID))
}

// admin is where a node tells its metrics.
func (c *shadowCluster) admin(n devNode) (string, error) {
	addr := c.cache.Snapshot().Nodes[view.NodeID(n.ID)].AdminAddress
	if addr == "" {
		return "", fmt.Errorf("%s has no admin port", n.ID)
	}
	return addr, nil
}

// placesOf chooses n records whose keys lie in some ranges.
func placesOf(ranges view.Ranges, n uint64) estate {
	return keysOfSlots(func(slot uint16) bool { return ranges.Contains(view.SlotsRange(slot, slot).First) }, n)
}

// shareOf is how many of many draws fall into some ranges.
func shareOf(ranges view.Ranges, mine estate, draw func() uint32) float64 {
	const draws = 100_000
	key := make([]byte, workload.Text30.Len())
	workload.Text30.Put(key, 0)
	in := 0
	for range draws {
		workload.Text30.Patch(key, uint64(mine.ids[draw()]))
		if ranges.Contains(record.PlaceOf(0, key)) {
			in++
		}
	}
	return float64(in) / draws
}
