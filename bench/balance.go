package bench

// Claim: under skewed load on four nodes the balancer brings the hottest node within 1.3 times the average without being
// asked, and then stays quiet.
//
// Refuted by: a hottest node above 1.3 times the average of what the nodes themselves count, when the time is up or in the quiet
// period after; a move in that period; a record that is missing; an error.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/engine/record"
)

const balanceClaim = "skewed load on 4 nodes: the balancer brings the hottest node within 1.3x of the average without being asked, and stays quiet afterwards"

type balanceFlags struct {
	commonFlags
	serverFlags
	nodes   int
	records count
	value   int
	clients int
	perSec  float64
	skew    float64
	writes  float64
	limit   time.Duration
	quiet   time.Duration
}

func balanceCommand() *cobra.Command {
	f := balanceFlags{records: 100_000}
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "Let a cluster under skewed load become even by itself",
		Long: `Starts a cluster, loads records into all of its nodes, and has clients read and write them at a fixed
rate: by a Zipfian distribution whose most popular keys all lie on one node. Every second it asks
the nodes how many commands they have executed. When for three seconds no node carries more than
1.3 times the average, and nothing moves, the load goes on for the quiet period, in which nothing should move.

The balancer has its default settings, and nobody asks it for a move.`,
		Example: `  ostro bench balance
  ostro bench balance --rate 20000 --skew 0.8 --quiet 60s
  ostro bench balance --plot balance.svg --json > balance.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, balanceClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureBalance(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	f.addOstro(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.nodes, "nodes", 4, "nodes of the cluster")
	fl.Var(&f.records, "records", "records of all nodes")
	fl.IntVar(&f.value, "value", 100, "bytes of a value; keys have 30")
	fl.IntVar(&f.clients, "clients", 8, "connections to each node")
	fl.Float64Var(&f.perSec, "rate", 12_000, "operations per second of all clients, whatever the nodes do")
	fl.Float64Var(&f.skew, "skew", usualSkew, "skew of the load, from 0 on")
	fl.Float64Var(&f.writes, "writes", ycsbWrites, "share of writes, 0 to 1")
	fl.DurationVar(&f.limit, "within", 90*time.Second, "how long it may take until the load is even")
	fl.DurationVar(&f.quiet, "quiet", 30*time.Second, "how long it is watched afterwards")
	return cmd
}

func (f balanceFlags) check() error {
	switch {
	case f.nodes < 1+backups:
		return fmt.Errorf("--nodes %d: at least %d, for there are three copies", f.nodes, 1+backups)
	case f.value < workload.StampLen:
		return fmt.Errorf("--value %d: at least %d, so that a record can be told from another", f.value, workload.StampLen)
	case f.clients < 1 || f.perSec <= 0 || f.limit <= 0 || f.quiet <= 0 || f.skew < 0 || f.writes < 0 || f.writes > 1:
		return errors.New("--clients, --rate, --within and --quiet must be above 0, --skew from 0 on, --writes from 0 to 1")
	}
	return nil
}

// even is what the claim calls so, and evenSeconds how long it must be.
const (
	even        = 1.3
	evenSeconds = 3
)

func measureBalance(ctx context.Context, p *progress, f balanceFlags) (*balanceOutcome, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	program, err := f.program()
	if err != nil {
		return nil, err
	}
	p.begin("start a cluster")
	c, err := startCluster(ctx, program, f.nodes, append([]string{"--balance", "auto", "--lease", steadyLease}, strings.Fields(f.ostroArgs)...)...)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	w, err := watch(ctx, c.Etcd)
	if err != nil {
		return nil, err
	}
	defer w.close()
	s := &balanceScene{f: f, w: w, cluster: c}
	for _, n := range c.Nodes {
		s.addrs = append(s.addrs, n.Redis)
	}
	if err := s.load(ctx, p); err != nil {
		return nil, err
	}
	out := &balanceOutcome{Records: uint64(f.records), Rate: f.perSec, Skew: f.skew, Nodes: f.nodes}
	if err := s.run(ctx, p, out); err != nil {
		return nil, err
	}
	out.Verdicts = out.verdicts()
	p.begin("read back %s records", f.records)
	system := &steadySystem{addrs: s.addrs}
	return out, system.verify(ctx, estate{ids: s.keys}, f.value)
}

// balanceScene is a cluster and its load.
type balanceScene struct {
	f       balanceFlags
	cluster *cluster
	w       *watcher
	addrs   []string
	owner   [record.PlaceSlots]uint8
	keys    []uint32 // by how popular they are
}

// load writes all records, and ranks them: those of the first node come first.
func (s *balanceScene) load(ctx context.Context, p *progress) (err error) {
	if s.owner, err = ownersAt(s.addrs[0], s.addrs); err != nil {
		return err
	}
	all := keysOfSlots(func(uint16) bool { return true }, uint64(s.f.records))
	byNode := make([][]uint32, len(s.addrs))
	for i, id := range all.ids {
		n := s.owner[record.SlotOf([]byte(all.key(i)))]
		byNode[n] = append(byNode[n], id)
	}
	for n, ids := range byNode {
		p.begin("load %s records into %s", grouped(int64(len(ids))), s.cluster.Nodes[n].ID)
		if err := loadInto(ctx, p, s.addrs[n], estate{ids: ids}, s.f.value); err != nil {
			return err
		}
	}
	s.keys = ranked(byNode)
	return nil
}

// run has clients at work until the load is even, or the time is up, and for the quiet period.
func (s *balanceScene) run(ctx context.Context, p *progress, out *balanceOutcome) error {
	r, err := newRoamer(s.addrs, s.owner, s.f.clients, 1, s.keys, popular(len(s.keys), s.f.skew), s.f.value)
	if err != nil {
		return err
	}
	defer r.close()
	loadCtx, stop := context.WithCancel(ctx)
	defer stop()
	var seen roamTotal
	ended := make(chan error, 1)
	go func() {
		var err error
		seen, err = r.run(loadCtx, s.f.perSec, s.f.writes)
		ended <- err
	}()
	if err := s.follow(ctx, p, ended, out); err != nil {
		return err
	}
	last := time.Since(r.began)
	stop()
	if err := <-ended; err != nil {
		return err
	}
	out.Errors, out.Late = seen.errors, seen.late
	out.First = stretchOf(seen.trail, span{from: time.Second, to: 4 * time.Second})
	out.Last = stretchOf(seen.trail, span{from: last - s.f.quiet, to: last})
	return nil
}

// follow looks at the nodes every second.
func (s *balanceScene) follow(ctx context.Context, p *progress, ended <-chan error, out *balanceOutcome) error {
	p.begin("%s/s: wait until the load is even", rate(s.f.perSec))
	began := time.Now()
	m := &nodeMeter{nodes: s.cluster.Nodes}
	if err := m.begin(ctx); err != nil {
		return err
	}
	good, quietSince := 0, time.Time{}
	for quietSince.IsZero() || time.Since(quietSince) < s.f.quiet {
		if err := sleepUnless(ctx, ended, time.Second); err != nil {
			return err
		}
		ops, err := m.take(ctx)
		if err != nil {
			return err
		}
		snapshot := s.w.cache.Snapshot()
		point := balancePoint{At: time.Since(began).Seconds(), Ops: ops, Ratio: ratioOf(ops), Moving: moving(snapshot)}
		point.Quiet = !quietSince.IsZero()
		out.Series = append(out.Series, point)
		if good++; point.Ratio > even || point.Moving > 0 {
			good = 0
		}
		if quietSince.IsZero() && (good >= evenSeconds || time.Since(began) > s.f.limit) {
			quietSince, out.Even = time.Now(), time.Since(began)
			out.InTime = good >= evenSeconds
			p.begin("%s/s: see whether it stays so", rate(s.f.perSec))
		}
	}
	out.tell(s.w.cache.Snapshot(), began, quietSince)
	return nil
}

func moving(s *meta.Snapshot) (n int) {
	for _, m := range s.Migrations {
		if !m.Stage.Ended() {
			n++
		}
	}
	return n
}
