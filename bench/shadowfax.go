package bench

// Claim: ownership that is checked once for a batch costs nothing, however finely the space is split; sessions with
// large batches are what makes a server fast; and a tenth of a node's hash space moves to another node, hot or cold,
// while clients go on.
//
// Shadowfax (VLDB '21; chapter 3 of the dissertation): VMs with 64 cores (E64_v3), 250M records of 8 B keys and 256 B values,
// YCSB-F, 130 Mops/s a server. Ours: servers, etcd and clients on two cores.
//
// Refuted by: views that lose throughput or processor time between 1 and 2,048 ranges beyond the spread of the
// rounds; a target that does not get to its share; an operation that fails; cold records that take as long
// to move by indirection as by a scan.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/bench/workload"
)

const shadowfaxClaim = "views cost the same with 1 and 2,048 ranges; a tenth of the hash space moves under load, and cold data 5x sooner by indirection than by a scan (6x in the paper)"

type shadowfaxFlags struct {
	commonFlags
	serverFlags
	parts    []string
	records  count
	value    int
	duration time.Duration
	rounds   int
	threads  []int
	sessions int
	batches  []int
	ranges   []int
	memory   []float64
	clients  int
	fraction float64
	calm     time.Duration
	after    time.Duration
	budget   float64
	cold     []string

	unrecorded bool
}

var shadowParts = parts[*shadow]{
	{"sessions", (*shadow).measureSessions},
	{"ownership", (*shadow).measureOwnership},
	{"memory", (*shadow).measureMemory},
	{"scaleout", (*shadow).measureScaleout},
	{"compaction", (*shadow).measureCompaction},
}

func shadowfaxCommand() *cobra.Command {
	f := shadowfaxFlags{records: 400e3}
	cmd := &cobra.Command{
		Use:   "shadowfax",
		Short: "Sessions, views, memory budgets, and scale-out of data beyond memory",
		Long: `Measures what Shadowfax claims, in parts:

sessions    native sessions to one server: throughput against the size of a batch and the number of client threads (YCSB-F).
ownership   a node of a cluster owns 1 to 2,048 ranges; batches are accepted by their view, or each key is looked up
            (--ownership-check keys), in turns; Redis clients beside them.
memory      one server with memory for a part of the data: throughput and how much is answered from memory.
scaleout    one node owns all keys; a tenth moves to an idle one under load: with all data in memory, and with a memory budget
            by each way to move cold records. Throughput, requests that wait at the target, time until it carries its share.
            Clients are as they are by default: nodes keep the result of a write until they have it, and it moves, too.
            Without that (--unrecorded) a write costs less, as in the other parts.
compaction  after a move by indirection: how many records the target still needs the source's log for, over time, and what it
            costs clients that they follow.

Every part starts its own servers, and ends them.`,
		Example: `  ostro bench shadowfax
  ostro bench shadowfax --parts ownership --ranges 1,2048 --rounds 9
  ostro bench shadowfax --parts scaleout --records 1M --budget 0.25 --cold indirect,scan
  ostro bench shadowfax --plot shadowfax.svg --json > shadowfax.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, shadowfaxClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureShadowfax(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	f.addOstro(cmd)
	fl := cmd.Flags()
	fl.StringSliceVar(&f.parts, "parts", shadowParts.names(), "what to measure")
	fl.Var(&f.records, "records", "records of the server or node")
	fl.IntVar(&f.value, "value", 256, "bytes of a value; keys have 30")
	fl.DurationVar(&f.duration, "duration", 500*time.Millisecond, "length of each round of sessions, ownership and memory")
	fl.IntVar(&f.rounds, "rounds", 3, "rounds of each of them")
	fl.IntSliceVar(&f.threads, "threads", []int{1, 2}, "client threads")
	fl.IntVar(&f.sessions, "sessions", 8, "sessions of each client thread")
	fl.IntSliceVar(&f.batches, "batches", []int{1, 4, 16, 64, 256, 512}, "operations of a batch")
	fl.IntSliceVar(&f.ranges, "ranges", []int{1, 16, 128, 512, 2048}, "into how many ranges ownership is split, at most 2048")
	fl.Float64SliceVar(&f.memory, "memory", []float64{1, 0.75, 0.5, 0.25}, "shares of the data that memory has room for")
	fl.IntVar(&f.clients, "clients", 256, "operations under way in scaleout and compaction")
	fl.Float64Var(&f.fraction, "fraction", 0.1, "how much of the hash space moves")
	fl.DurationVar(&f.calm, "calm", 2*time.Second, "load before a move")
	fl.DurationVar(&f.after, "after", 2*time.Second, "load after it")
	fl.Float64Var(&f.budget, "budget", 0.25, "share of the data that memory has room for in scaleout and compaction")
	fl.BoolVar(&f.unrecorded, "unrecorded", false, "writes without an identity in scaleout and compaction: nodes keep no results of them")
	fl.StringSliceVar(&f.cold, "cold", knownCold, "ways to move cold records: "+strings.Join(knownCold, ", "))
	return cmd
}

func (f shadowfaxFlags) check() error {
	if err := shadowParts.check(f.parts); err != nil {
		return err
	}
	switch {
	case f.value < workload.StampLen:
		return fmt.Errorf("--value %d: at least %d, so that a record can be told from another", f.value, workload.StampLen)
	case !positive(f.rounds, f.sessions, f.clients) || !positive(f.threads...) || !positive(f.batches...) || !positive(f.ranges...):
		return errors.New("--rounds, --sessions, --clients, --threads, --batches and --ranges must be at least 1")
	case f.duration <= 0 || f.calm <= 0 || f.after <= 0:
		return errors.New("--duration, --calm and --after must be positive")
	case slices.Max(f.ranges) > mostRanges:
		return fmt.Errorf("--ranges %d: at most %d", slices.Max(f.ranges), mostRanges)
	case f.fraction <= 0 || f.fraction >= 1 || f.budget <= 0 || f.budget > 1:
		return errors.New("--fraction must lie between 0 and 1, --budget above 0 and at 1 at most")
	}
	for _, share := range f.memory {
		if share <= 0 || share > 1 {
			return fmt.Errorf("--memory %g: a share above 0, at most 1", share)
		}
	}
	for _, mode := range f.cold {
		if !slices.Contains(knownCold, mode) {
			return fmt.Errorf("--cold %q: this version can do %s", mode, strings.Join(knownCold, ", "))
		}
	}
	return nil
}

func measureShadowfax(ctx context.Context, p *progress, f shadowfaxFlags) (*shadowOutcome, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	x := &shadow{f: f, p: p, out: &shadowOutcome{Records: uint64(f.records), ValueBytes: f.value}}
	if _, err := shadowParts.measure(ctx, x, f.parts); err != nil {
		return nil, err
	}
	x.out.judge()
	return x.out, nil
}

// shadow is the experiment while it runs.
type shadow struct {
	f      shadowfaxFlags
	p      *progress
	out    *shadowOutcome
	traces workload.Traces
}
