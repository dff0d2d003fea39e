package bench

// Claim: half of what a node has moves to another node while clients use it at 80% of what they could, at
// hundreds of megabytes a second and without a pause: early ownership, pulls in parallel, priority pulls for what is asked
// for first, re-replication deferred.
//
// Rocksteady (SOSP '17; chapter 2 of the dissertation): 24 machines of CloudLab (2x Xeon E5-2650v2, 40 Gbps ConnectX-3, a
// dispatch core and 12 workers a server), YCSB-B at 80% load, 30 B keys, 100 B values, 300M records: 758 MB/s, 99.9th percentile
// 250 µs at first and 183 µs soon; 549 MB/s with ownership at the source until the end, 904 MB/s without
// priority pulls. Ours: source, target, their backups, etcd and the clients on two cores.
//
// Refuted by: less than ten times the rate of Redis 7.0 Cluster resharding of such data in the
// same run, or than 200 MB/s; a 99.9th percentile of clients above three times that of the calm before and after; late ownership
// that takes less time or has the lower tail; synchronous priority pulls with the lower median; a record
// that is missing; an error.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	records     count
	value       int
	clients     int
	connections int
	depth       int
	ofRedis     count
	redisLimit  time.Duration
	loads       []int
	perSec      float64
	calm        time.Duration
	rounds      int
	tries       int
	skewRounds  int
	skews       []string
	modes       []string
	redis       bool
	alone       []int
}

// rocksteadyModes are ways to move, all of the same protocol.
var rocksteadyModes = map[string]meta.MigrationOptions{
	"async":     {PriorityPulls: meta.PriorityPullsAsync, Sample: true},
	"sync":      {PriorityPulls: meta.PriorityPullsSync, Sample: true},
	"none":      {PriorityPulls: meta.PriorityPullsNone, Sample: true},
	"no-sample": {PriorityPulls: meta.PriorityPullsAsync},
	"late":      {Ownership: meta.OwnershipLate},
}

// allModes are their names, the usual one first.
var allModes = []string{"async", "sync", "none", "no-sample", "late"}

func rocksteadyCommand() *cobra.Command {
	f := rocksteadyFlags{records: 2e6, ofRedis: 3e5}
	cmd := &cobra.Command{
		Use:   "rocksteady",
		Short: "Move half of a node's records under load, beside Redis Cluster",
		Long: `Loads records into one node of a cluster and has clients read and write them (YCSB-B: 95% reads) at a part of the
most that they get without falling behind. After some calm seconds half of the records moves to another node; when all
is over there are as many calm seconds again. The next migration moves them back; and so on. In each round
all modes take turns, under the same load. Operations are due at random moments, whatever the nodes do, and a latency counts
from when its operation was due. Clients follow redirections as cluster clients do, and share connections when all are
busy. Where the host of a virtual machine took time of its cores meanwhile, or slowed them down, the migration is done again, and of all tries the
one counts from which it took least, whatever its figures; errors of all count.

Redis 7.0 Cluster does the same with redis-cli --cluster reshard: masters without replicas, where Ostro keeps three copies.
It is given fewer records (--redis-records), for it takes long; its rate does not depend on how many there are.

Modes: async      priority pulls in batches, the default
       sync       one key at a time, each operation for itself
       none       clients wait until their record comes by itself
       no-sample  nothing is sent ahead
       late       the source serves until the end, and everything is re-replicated as it comes

Then the two ends alone, by the size of a record: reading a store for pulls, and replaying what they bring.
At the end it says of every claim whether it held.`,
		Example: `  ostro bench rocksteady
  ostro bench rocksteady --loads 30,80 --skews 0.99 --modes async,none --rounds 3
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
	fl.IntVar(&f.clients, "clients", 32, "clients whose most is what loads are a part of: each sends the next operation after the last")
	fl.IntVar(&f.connections, "connections", 64, "connections to each node that the offered load goes over")
	fl.IntVar(&f.depth, "depth", 16, "operations under way on each of them at the most: what is due when all are busy shares one, and beyond that waits")
	fl.IntSliceVar(&f.loads, "loads", []int{80}, "offered loads, in percent of the most that --clients get from one node")
	fl.Float64Var(&f.perSec, "rate", 0, "offered load in operations per second instead")
	fl.DurationVar(&f.calm, "calm", 1500*time.Millisecond, "time without a migration before each one, and after it")
	fl.IntVar(&f.rounds, "rounds", 3, "migrations of each mode")
	fl.IntVar(&f.tries, "tries", 4, "most tries of a round: one during which the host of a virtual machine took time of it, or its cores had another pace than when the load was found, is run again, and the calmest counts")
	fl.StringSliceVar(&f.skews, "skews", []string{"0", "0.5", "0.99", "1.2"}, "skews of the load, with the first mode")
	fl.IntVar(&f.skewRounds, "skew-rounds", 1, "migrations of each skew but 0.99, which has those of its mode")
	fl.StringSliceVar(&f.modes, "modes", allModes, "ways to move, at skew 0.99")
	fl.BoolVar(&f.redis, "redis", true, "also reshard a Redis Cluster of such data")
	fl.Var(&f.ofRedis, "redis-records", "records of the Redis node, if it is to have fewer")
	fl.DurationVar(&f.redisLimit, "redis-limit", time.Minute, "how long a resharding of Redis may take; its rate is then that of the slots which it has moved")
	fl.StringVar(&f.redisProgram, "redis-program", "redis-server", "the redis-server to start")
	fl.IntSliceVar(&f.alone, "alone", []int{64, 128, 256, 512, 1024, 2048}, "sizes of records for the two ends alone; 0 to leave them out")
	return cmd
}

func (f rocksteadyFlags) check() error {
	if f.redis { // It has its turn after minutes.
		if _, err := redisPrograms(f.redisProgram); err != nil {
			return err
		}
	}
	switch {
	case f.value < workload.StampLen:
		return fmt.Errorf("--value %d: at least %d, so that a record can be told from another", f.value, workload.StampLen)
	case f.clients < 1 || f.connections < 1 || f.depth < 1 || f.rounds < 1 || f.skewRounds < 1 || f.tries < 1:
		return errors.New("--clients, --connections, --depth, --rounds, --skew-rounds and --tries must be at least 1")
	case f.calm <= 0 || f.redisLimit <= 0 || f.perSec < 0:
		return errors.New("--calm and --redis-limit must be above 0, --rate not below")
	case len(f.loads) == 0 || len(f.modes) == 0:
		return errors.New("--loads and --modes must name some")
	}
	for _, l := range f.loads {
		if l < 1 || l > 100 {
			return fmt.Errorf("--loads %d: from 1 to 100", l)
		}
	}
	for _, m := range f.modes {
		if _, known := rocksteadyModes[m]; !known {
			return fmt.Errorf("--modes %q: use %s", m, strings.Join(allModes, ", "))
		}
	}
	return nil
}

// usualSkew is YCSB's.
const usualSkew = 0.99

// steadyCase is a migration to measure.
type steadyCase struct {
	mode string
	skew float64
	load int // percent
}

// cases are all migrations to measure, in their turns: in each round every mode, and beginning with another one.
func (f rocksteadyFlags) cases() (all []steadyCase, err error) {
	var skews []float64
	for _, text := range f.skews {
		skew, err := strconv.ParseFloat(text, 64)
		if err != nil || !(skew >= 0 && skew < 10) {
			return nil, fmt.Errorf("--skews %q: a number from 0 on", text)
		}
		if !slices.Contains(skews, skew) {
			skews = append(skews, skew)
		}
	}
	for round := range max(f.rounds, f.skewRounds) {
		var turns []steadyCase
		for _, load := range f.loads {
			for _, mode := range f.modes {
				if round < f.rounds {
					turns = append(turns, steadyCase{mode, usualSkew, load})
				}
			}
			for _, skew := range skews {
				if round < f.skewRounds && skew != usualSkew {
					turns = append(turns, steadyCase{f.modes[0], skew, load})
				}
			}
		}
		first := round % len(turns)
		all = append(append(all, turns[first:]...), turns[:first]...)
	}
	return all, nil
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
	if err := f.system(ctx, p, steadyOstro, cases, out); err != nil {
		return nil, err
	}
	if f.redis {
		err := f.system(ctx, p, steadyRedis, cases, out)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // What was measured of Ostro by then has taken minutes, and is true.
			out.RedisFailed = firstLine(err.Error())
		}
	}
	for _, size := range given(f.alone) {
		p.begin("the two ends alone, records of %d B", size)
		a, err := measureEnds(ctx, size)
		if err != nil {
			return nil, err
		}
		out.Ends = append(out.Ends, a...)
	}
	out.judge()
	return out, nil
}
