package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// steadySystem is a cluster of either kind whose first two nodes exchange half of what the first has.
type steadySystem struct {
	name  string
	addrs []string
	pids  []int
	move  func(context.Context, meta.MigrationOptions) (moveResult, error)
	stop  func()
}

// moveResult is what a migration moved.
type moveResult struct {
	records uint64
	served  time.Duration // from its beginning until all records were at the target, which then serves them alone
	took    time.Duration // from its beginning to its end, as the system tells it
}

// cpu is the time that source and target have run so far.
func (s *steadySystem) cpu() (at [2]time.Duration) {
	for i := range at {
		at[i], _ = exactCPUTime(s.pids[i]) // One that is gone is found by its clients.
	}
	return at
}

// steadyNodes is how many a cluster has: three copies of all need three.
const steadyNodes = 3

// steadyLease keeps a node alive that the machine's other work holds up.
const steadyLease = "20s"

func steadyOstro(ctx context.Context, f rocksteadyFlags) (*steadySystem, error) {
	program, err := f.program()
	if err != nil {
		return nil, err
	}
	c, err := startCluster(ctx, program, steadyNodes, append([]string{"--lease", steadyLease, "--log-level", "warn"}, strings.Fields(f.ostroArgs)...)...)
	if err != nil {
		return nil, err
	}
	w, err := watch(ctx, c.Etcd)
	if err != nil {
		c.stop()
		return nil, err
	}
	s := &steadySystem{name: "ostro", stop: func() { w.close(); c.stop() }}
	for _, n := range c.Nodes {
		s.addrs, s.pids = append(s.addrs, n.Redis), append(s.pids, n.Pid)
	}
	a, b := view.NodeID(c.Nodes[0].ID), view.NodeID(c.Nodes[1].ID)
	half := w.cache.Snapshot().Map.Ranges(a).Share(0.5)
	s.move = func(ctx context.Context, o meta.MigrationOptions) (moveResult, error) {
		m, err := w.migrate(ctx, a, b, half, o)
		if err == nil {
			a, b = b, a // The next one goes back.
		}
		return m, err
	}
	return s, nil
}

// migrate moves ranges and waits until that has ended.
func (w *watcher) migrate(ctx context.Context, from, to view.NodeID, ranges view.Ranges, o meta.MigrationOptions) (moveResult, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	m, err := w.store.Migrate(ctx, meta.MigrationRequest{Source: from, Target: to, Ranges: ranges, Options: o})
	if err != nil {
		return moveResult{}, err
	}
	s, err := w.cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[m.ID].Stage.Ended() })
	if err != nil {
		return moveResult{}, fmt.Errorf("wait for migration %d: %w", m.ID, err)
	}
	if m = s.Migrations[m.ID]; m.Stage != meta.Done {
		return moveResult{}, fmt.Errorf("migration %d is %s: %s", m.ID, m.Stage, m.Why)
	}
	return moveResult{uint64(m.Records), m.Served.Sub(m.Began), m.Ended.Sub(m.Began)}, nil
}

func steadyRedis(ctx context.Context, f rocksteadyFlags) (*steadySystem, error) {
	c, err := startRedisCluster(ctx, f.serverFlags, steadyNodes)
	if err != nil {
		return nil, err
	}
	s := &steadySystem{name: "redis", addrs: c.addrs(), stop: c.stop}
	for _, t := range c.nodes {
		s.pids = append(s.pids, t.Pid)
	}
	from, to := 0, 1
	half := record.PlaceSlots / steadyNodes / 2
	s.move = func(ctx context.Context, _ meta.MigrationOptions) (moveResult, error) {
		had, err := sizeOf(c.nodes[to].Addr)
		if err != nil {
			return moveResult{}, err
		}
		began := time.Now()
		if err := c.reshard(ctx, from, to, half); err != nil {
			return moveResult{}, err
		}
		took := time.Since(began)
		has, err := sizeOf(c.nodes[to].Addr)
		from, to = to, from
		return moveResult{has - had, took, took}, err
	}
	return s, nil
}

func sizeOf(addr string) (uint64, error) {
	ctl, err := dialControl(addr)
	if err != nil {
		return 0, err
	}
	defer ctl.close()
	return ctl.size()
}

// keysOfSlots chooses n records whose keys lie in some slots.
func keysOfSlots(in func(slot uint16) bool, n uint64) estate {
	key := make([]byte, workload.Text30.Len())
	workload.Text30.Put(key, 0)
	out := estate{ids: make([]uint32, 0, n)}
	for id := uint32(0); uint64(len(out.ids)) < n; id++ {
		workload.Text30.Patch(key, uint64(id))
		if in(record.SlotOf(key)) {
			out.ids = append(out.ids, id)
		}
	}
	return out
}

// loadInto writes records into a node that owns them all.
func loadInto(ctx context.Context, p *progress, addr string, mine estate, value int) error {
	return takeoverFlags{value: value}.load(ctx, p, devNode{Redis: addr}, mine)
}

// verify reads all records from whoever owns them.
func (s *steadySystem) verify(ctx context.Context, mine estate, value int) error {
	owner, err := ownersAt(s.addrs[0], s.addrs)
	if err != nil {
		return err
	}
	byNode := make([][]uint32, len(s.addrs))
	for i, id := range mine.ids {
		n := owner[record.SlotOf([]byte(mine.key(i)))]
		byNode[n] = append(byNode[n], id)
	}
	var errs []error
	for n, ids := range byNode {
		if len(ids) > 0 {
			errs = append(errs, verifyIDs(ctx, s.addrs[n], ids, value))
		}
	}
	return errors.Join(errs...)
}
