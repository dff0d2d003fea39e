package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	move  func(context.Context, meta.MigrationOptions) moveResult
	// settled returns when nothing that the last migration caused goes on any more, as far as that is known.
	settled func(context.Context) error
	// pulls is how many priority pulls there have been, and of how many keys.
	pulls func(context.Context) ([2]int64, error)
	stop  func()
	torn  bool // a migration was broken off
}

// moveResult is what a migration moved.
type moveResult struct {
	records uint64
	began   time.Time     // when ownership moved, if that is known
	served  time.Duration // from its beginning until all records were at the target, which then serves them alone
	took    time.Duration // from its beginning to its end, as the system tells it
	closed  time.Duration // for how long nobody served when ownership moved, if that is known
	partial bool          // its time was over, and this is what it had moved by then
	err     error
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
	s.move = func(ctx context.Context, o meta.MigrationOptions) moveResult {
		m := w.migrate(ctx, a, b, half, o)
		if m.err == nil {
			a, b = b, a // The next one goes back.
		}
		return m
	}
	s.settled = func(ctx context.Context) error { return w.dropped(ctx, a, b) }
	s.pulls = func(ctx context.Context) ([2]int64, error) { return pullsOf(ctx, c.Nodes) }
	return s, nil
}

// settlePatience is how long nodes may take to drop what they have given away.
const settlePatience = 10 * time.Second

// dropped waits until nodes have dropped what they had given away.
func (w *watcher) dropped(ctx context.Context, nodes ...view.NodeID) error {
	waiting, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	_, _ = w.cache.Wait(waiting, func(s *meta.Snapshot) bool { // If it takes longer, that is measured.
		return !slices.ContainsFunc(nodes, func(n view.NodeID) bool { return len(s.Logs[s.Nodes[n].Log].Leaving) > 0 })
	})
	return ctx.Err()
}

// pullsOf sums up priority pulls of all nodes, and their keys.
func pullsOf(ctx context.Context, nodes []devNode) (sum [2]int64, err error) {
	for _, n := range nodes {
		figures, err := readMetrics(ctx, n.Admin)
		if err != nil {
			return sum, fmt.Errorf("metrics of %s: %w", n.ID, err)
		}
		sum[0] += int64(figures["ostro_migrate_priority_pulls_total"])
		sum[1] += int64(figures["ostro_migrate_priority_keys_total"])
	}
	return sum, nil
}

// moveLimit is how long a migration may take; then it is cancelled.
const moveLimit = 2 * time.Minute

// migrate moves ranges and waits until that has ended.
func (w *watcher) migrate(ctx context.Context, from, to view.NodeID, ranges view.Ranges, o meta.MigrationOptions) moveResult {
	m, err := w.store.Migrate(ctx, meta.MigrationRequest{Source: from, Target: to, Ranges: ranges, Options: o})
	if err != nil {
		return moveResult{err: err}
	}
	ended := func(s *meta.Snapshot) bool { return s.Migrations[m.ID].Stage.Ended() }
	waiting, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	s, err := w.cache.Wait(waiting, ended)
	if err != nil && ctx.Err() == nil {
		return moveResult{err: w.giveUp(ctx, m.ID, ended)}
	}
	if err != nil {
		return moveResult{err: fmt.Errorf("wait for migration %d: %w", m.ID, err)}
	}
	if m = s.Migrations[m.ID]; m.Stage != meta.Done {
		return moveResult{err: fmt.Errorf("migration %d is %s: %s", m.ID, m.Stage, m.Why)}
	}
	r := moveResult{records: uint64(m.Records), began: m.Began, took: m.Ended.Sub(m.Began), closed: m.Closed}
	r.served = r.took // With late ownership the target serves when all is safe.
	if !m.Served.IsZero() {
		r.served = m.Served.Sub(m.Began)
	}
	return r
}

// giveUp has the ranges return to where they were.
func (w *watcher) giveUp(ctx context.Context, id uint64, ended func(*meta.Snapshot) bool) error {
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	err := w.store.CancelMigration(ctx, id)
	if err == nil {
		_, err = w.cache.Wait(ctx, ended)
	}
	return errors.Join(fmt.Errorf("migration %d was not over within %v, and was cancelled", id, moveLimit), err)
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
	s.settled = func(context.Context) error { return nil }
	s.pulls = func(context.Context) (none [2]int64, err error) { return none, nil }
	s.move = func(ctx context.Context, _ meta.MigrationOptions) moveResult {
		m := c.timed(ctx, from, to, half, f.redisLimit)
		from, to, s.torn = to, from, s.torn || m.partial || m.err != nil
		return m
	}
	return s, nil
}

// timed reshards until it is done or the time is over.
func (c *redisCluster) timed(ctx context.Context, from, to, slots int, limit time.Duration) moveResult {
	had, err := sizeOf(c.nodes[to].Addr)
	if err != nil {
		return moveResult{err: err}
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	err = c.reshard(bounded, from, to, slots)
	took := time.Since(began)
	if late := bounded.Err() != nil && ctx.Err() == nil; err != nil && !late {
		return moveResult{err: err}
	}
	has, sizeErr := sizeOf(c.nodes[to].Addr)
	return moveResult{records: has - had, served: took, took: took, partial: err != nil, err: sizeErr}
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
