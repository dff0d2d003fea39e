package bench

// Claim: half of what a node has moves to another node while clients use it at 80% of what they could, at
// hundreds of megabytes a second and without a pause: early ownership, pulls in parallel, priority pulls for what is asked
// for first, re-replication deferred.
//
// Rocksteady (SOSP '17): 24 CloudLab machines (Xeon E3-1230, 4 cores, 40 Gbps ConnectX-3), YCSB-B at 80% load, 30 B
// keys, 100 B values, 300M records: 758 MB/s, 99.9th percentile from 72 to below 250 µs, median back
// at its level after 34 s. Ours: source, target, their backups, etcd and the clients on two cores.
//
// Refuted by: less than ten times the rate of Redis 7.0 Cluster resharding of the same data in the
// same run, or than 200 MB/s; a 99.9th percentile of clients above three times that of the seconds before; a record
// that is missing; an error.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/meta"
)

const rocksteadyClaim = "half of a node's records move under load at 10x the rate of Redis' resharding and 200 MB/s at least, with a p99.9 of at most 3x; 758 MB/s in the paper"

type rocksteadyFlags struct {
	commonFlags
	serverFlags
	records count
	value   int
	clients int
	ofRedis count
	loads   []int
	perSec  float64
	calm    time.Duration
	rounds  int
	skews   []string
	modes   []string
	redis   bool
	alone   []int
}

// rocksteadyModes are ways to move, all of the same protocol.
var rocksteadyModes = map[string]meta.MigrationOptions{
	"async":     {PriorityPulls: meta.PriorityPullsAsync, Sample: true},
	"sync":      {PriorityPulls: meta.PriorityPullsSync, Sample: true},
	"none":      {PriorityPulls: meta.PriorityPullsNone, Sample: true},
	"no-sample": {PriorityPulls: meta.PriorityPullsAsync},
}

func rocksteadyCommand() *cobra.Command {
	f := rocksteadyFlags{records: 4e6, ofRedis: 5e5}
	cmd := &cobra.Command{
		Use:   "rocksteady",
		Short: "Move half of a node's records under load, beside Redis Cluster",
		Long: `Loads records into one node of a cluster and has clients read and write them (YCSB-B: 95% reads) at a part of the
most that they get without falling behind. After some calm seconds half of the records moves to another node; then
back; and so on. The clients follow redirections as cluster clients do, and a latency counts from when its operation was
due. So every migration stands beside the calm before it, in the same run. Redis 7.0 Cluster
does the same with redis-cli --cluster reshard: masters without replicas, where Ostro keeps three copies. It is given
fewer records (--redis-records), for it takes long; its rate does not depend on how many there are.

Modes: async (priority pulls in batches, the default), sync (one at a time, the worker waits), none (clients wait until
their record comes by itself), no-sample (nothing is sent ahead).

Then the two ends alone, by the size of a record: reading a store for pulls, and replaying what they bring.`,
		Example: `  ostro bench rocksteady
  ostro bench rocksteady --loads 80 --skews 0.99 --modes async,none --rounds 3
  ostro bench rocksteady --redis=false --plot rocksteady.svg --json > rocksteady.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, rocksteadyClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureRocksteady(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	f.addOstro(cmd)
	fl := cmd.Flags()
	fl.Var(&f.records, "records", "records of the node; half of them move")
	fl.IntVar(&f.value, "value", 100, "bytes of a value; keys have 30")
	fl.IntVar(&f.clients, "clients", 16, "connections to each node")
	fl.IntSliceVar(&f.loads, "loads", []int{30, 80}, "offered loads, in percent of the most that the clients get from one node")
	fl.Float64Var(&f.perSec, "rate", 0, "offered load in operations per second instead")
	fl.DurationVar(&f.calm, "calm", 3*time.Second, "seconds without a migration before each one")
	fl.IntVar(&f.rounds, "rounds", 2, "migrations of each case: there, back, there ...")
	fl.StringSliceVar(&f.skews, "skews", []string{"0", "0.5", "0.99", "1.2"}, "skews of the load, with the first mode")
	fl.StringSliceVar(&f.modes, "modes", []string{"async", "sync", "none", "no-sample"}, "ways to move, at skew 0.99")
	fl.BoolVar(&f.redis, "redis", true, "also reshard a Redis Cluster of the same data")
	fl.Var(&f.ofRedis, "redis-records", "records of the Redis node, if it is to have fewer")
	fl.StringVar(&f.redisProgram, "redis-program", "redis-server", "the redis-server to start")
	fl.IntSliceVar(&f.alone, "alone", []int{64, 128, 256, 512, 1024, 2048}, "sizes of records for the two ends alone; none to leave them out")
	return cmd
}

func (f rocksteadyFlags) check() error {
	switch {
	case f.value < workload.StampLen:
		return fmt.Errorf("--value %d: at least %d, so that a record can be told from another", f.value, workload.StampLen)
	case f.clients < 1 || f.rounds < 1 || f.calm <= 0 || len(f.loads) == 0:
		return errors.New("--clients, --rounds and --calm must be at least 1, and --loads must name some")
	}
	for _, l := range f.loads {
		if l < 1 || l > 100 {
			return fmt.Errorf("--loads %d: from 1 to 100", l)
		}
	}
	for _, m := range f.modes {
		if _, known := rocksteadyModes[m]; !known {
			return fmt.Errorf("--modes %q: use async, sync, none or no-sample", m)
		}
	}
	return nil
}

// usualSkew is YCSB's.
const usualSkew = 0.99

// cases are all migrations to measure, each for some rounds.
func (f rocksteadyFlags) cases() (all []steadyCase, err error) {
	add := func(mode string, skew float64, load int) {
		if c := (steadyCase{mode, skew, load}); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	for _, load := range f.loads {
		for _, text := range f.skews {
			var skew float64
			if _, err := fmt.Sscan(text, &skew); err != nil || skew < 0 {
				return nil, fmt.Errorf("--skews %q: a number from 0 on", text)
			}
			if len(f.modes) > 0 {
				add(f.modes[0], skew, load)
			}
		}
		for _, mode := range f.modes {
			add(mode, usualSkew, load)
		}
	}
	return all, nil
}

type steadyCase struct {
	mode string
	skew float64
	load int // percent
}

func measureRocksteady(ctx context.Context, p *progress, f rocksteadyFlags) (*steadyOutcome, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	cases, err := f.cases()
	if err != nil {
		return nil, err
	}
	out := &steadyOutcome{Records: uint64(f.records), ValueBytes: f.value}
	systems := []func(context.Context, rocksteadyFlags) (*steadySystem, error){steadyOstro}
	if f.redis {
		systems = append(systems, steadyRedis)
	}
	for _, start := range systems {
		if err := f.system(ctx, p, start, cases, out); err != nil {
			return nil, err
		}
	}
	for _, size := range f.alone {
		p.begin("the two ends alone, records of %d B", size)
		a, err := measureEnds(ctx, size)
		if err != nil {
			return nil, err
		}
		out.Ends = append(out.Ends, a)
	}
	return out, nil
}

// system measures one system through all its cases.
func (f rocksteadyFlags) system(ctx context.Context, p *progress, start func(context.Context, rocksteadyFlags) (*steadySystem, error), cases []steadyCase, out *steadyOutcome) error {
	p.begin("start a cluster")
	s, err := start(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	if s.name == "redis" {
		f.records = min(f.records, f.ofRedis)
		cases = nil
		for _, load := range f.loads {
			cases = append(cases, steadyCase{"reshard", usualSkew, load})
		}
	}
	p.begin("load %s records, %s", f.records, s.name)
	owner, err := ownersAt(s.addrs[0], s.addrs)
	if err != nil {
		return err
	}
	mine := keysOfSlots(func(slot uint16) bool { return owner[slot] == 0 }, uint64(f.records))
	if err := loadInto(ctx, p, s.addrs[0], mine, f.value); err != nil {
		return err
	}
	most := 0.0
	if f.perSec == 0 {
		p.begin("find the most that clients get, %s", s.name)
		if most, err = f.most(ctx, s, mine); err != nil {
			return err
		}
	}
	for _, c := range cases {
		perSecond := f.perSec
		if perSecond == 0 {
			perSecond = most * float64(c.load) / 100
		}
		for round := range f.rounds {
			p.begin("%s, %s, skew %g, round %d of %d at %s/s", s.name, c.mode, c.skew, round+1, f.rounds, rate(perSecond))
			r, err := f.round(ctx, s, c, mine, perSecond)
			if err != nil {
				return fmt.Errorf("%s, %s, skew %g: %w", s.name, c.mode, c.skew, err)
			}
			r.Round = round + 1
			out.Rounds = append(out.Rounds, r)
			if r.Failed != "" {
				break
			}
		}
	}
	p.begin("read back %s records, %s", f.records, s.name)
	return s.verify(ctx, mine, f.value)
}

// most is how many operations a second all clients of the first node get without falling behind: as many as they get when
// each sends the next after the last, or less, until they keep up with a load of so many.
func (f rocksteadyFlags) most(ctx context.Context, s *steadySystem, mine estate) (float64, error) {
	const long, share, kept = 2 * time.Second, 0.9, 20 * time.Millisecond
	r, err := f.offer(ctx, s, mine, 0, long)
	if err != nil {
		return 0, err
	}
	most := float64(len(r.trail)) / long.Seconds()
	for {
		r, err := f.offer(ctx, s, mine, most*share, long)
		if err != nil {
			return 0, err
		}
		last := between(r.trail, long/2, long)
		if t := stretchOf(last, long/2, long, [2]time.Duration{}, [2]time.Duration{}); len(last) > 0 && t.P99 < kept {
			return most, nil
		}
		most *= share
	}
}

// offer puts a load on the first node for a while; 0 is as much as possible.
func (f rocksteadyFlags) offer(ctx context.Context, s *steadySystem, mine estate, perSecond float64, long time.Duration) (roamTotal, error) {
	owner, err := ownersAt(s.addrs[0], s.addrs)
	if err != nil {
		return roamTotal{}, err
	}
	r, err := newRoamer(s.addrs, owner, f.clients, mine.ids, skewed(len(mine.ids), usualSkew, 1), f.value)
	if err != nil {
		return roamTotal{}, err
	}
	defer r.close()
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	t, err := r.run(ctx, perSecond, ycsbWrites)
	return t, errors.Join(err, whole.Err())
}

// ycsbWrites is the share of writes in YCSB-B.
const ycsbWrites = 0.05

// steadyWarmUp is left out at the start of a round, and cooled is how long the load goes on after a migration.
const (
	steadyWarmUp = 500 * time.Millisecond
	cooled       = 500 * time.Millisecond
)

// round is one migration with the calm before it.
func (f rocksteadyFlags) round(ctx context.Context, s *steadySystem, c steadyCase, mine estate, perSecond float64) (steadyRound, error) {
	owner, err := ownersAt(s.addrs[0], s.addrs)
	if err != nil {
		return steadyRound{}, err
	}
	l, err := newRoamer(s.addrs, owner, f.clients, mine.ids, skewed(len(mine.ids), c.skew, 1), f.value)
	if err != nil {
		return steadyRound{}, err
	}
	defer l.close()
	loadCtx, stop := context.WithCancel(ctx)
	defer stop()
	var seen roamTotal
	ended := make(chan error, 1)
	go func() {
		var err error
		seen, err = l.run(loadCtx, perSecond, ycsbWrites)
		ended <- err
	}()
	r := steadyRound{System: s.name, Mode: c.mode, Skew: c.skew, Load: c.load, Offered: perSecond}
	if err := sleepUnless(ctx, ended, steadyWarmUp); err != nil {
		return r, err
	}
	began := time.Now()
	before := s.cpu()
	if err := sleepUnless(ctx, ended, f.calm); err != nil {
		return r, err
	}
	moves := time.Now()
	during := s.cpu()
	m, err := s.move(ctx, rocksteadyModes[c.mode])
	over := time.Now()
	after := s.cpu()
	if err != nil {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Failed = err.Error()
	}
	sleepErr := sleepUnless(ctx, ended, cooled)
	stop()
	if sleepErr == nil {
		sleepErr = <-ended
	}
	if sleepErr != nil {
		return r, sleepErr
	}
	r.Moved, r.Served, r.Took, r.Wall = m.records, m.served, m.took, over.Sub(moves)
	r.Bytes = int64(m.records) * int64(workload.Text30.Len()+f.value)
	r.Errors, r.Redirected, r.Late = seen.errors, seen.moved+seen.asked, seen.late
	at := func(t time.Time) time.Duration { return t.Sub(l.began) }
	r.Calm = stretchOf(seen.trail, at(began), at(moves), before, during)
	r.During = stretchOf(seen.trail, at(moves), at(over), during, after)
	r.Series = seriesOf(seen.trail, l.began, moves, over)
	return r, nil
}

// sleepUnless waits, or returns why the load has ended.
func sleepUnless(ctx context.Context, ended <-chan error, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-ended:
		if err == nil {
			err = errors.New("the load has ended")
		}
		return err
	case <-time.After(d):
		return nil
	}
}

// firstLine is the beginning of an error, for a table.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line[:min(len(line), 100)]
}
