package bench

// Claim: operations on a group of replicas that their NICs execute in a chain do not
// depend on the replicas' processors. When those are busy, gWRITE, gMEMCPY and gCAS
// have a 99th percentile hundreds of times lower than on a naive chain, whose programs
// receive, parse, execute and forward; replicas' programs take next to no processor
// time; and a longer chain is hardly slower.
//
// HyperLoop (SIGCOMM '18, §6.1): 20 machines with two 8-core Xeon E5-2650v2, 64 GB and a
// ConnectX-3 56 Gbps NIC; 10,000 operations each; stress-ng beside; p99 of gWRITE up to 801.8x
// lower, of gMEMCPY 848x, gCAS 53.9x (average), 302.2x (p95) and 849x (p99). Ours: one machine,
// replicas and NIC in processes of their own; the NIC is software at real-time priority.
// So its processor time, which hardware does not take, is shown beside the replicas'.
//
// Refuted by: a naive chain that keeps up under contention (ratios below 50), replicas' programs
// of the chain taking more than 2% of the naive ones' processor time for an operation, or a
// p99 of seven replicas more than three times that of three.

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/group"
)

const hyperClaim = "group operations that NICs execute do not wait for busy replicas: p99 hundreds of times below a naive chain's, replicas' processors idle"

type hyperFlags struct {
	commonFlags
	fabric     string
	replicas   []int
	sizes      []int
	primitives []string
	modes      []string
	loads      []string
	busy       int
	ops        int
	duration   time.Duration
	rounds     int
	window     int
	slots      int
	priority   int
}

func hyperCommand() *cobra.Command {
	f := hyperFlags{}
	cmd := &cobra.Command{
		Use:   "hyperloop",
		Short: "Measure group operations on busy replicas, by their NICs and by their programs",
		Long: `Runs group operations on chains of replicas: as HyperLoop does, by their NICs (chain), and by
their programs, which sleep until a message comes (naive-events) or look for one without
end (naive-polling). Modes take turns on the same replicas, with nothing else on the
machine (idle) and beside processes that compute without end (busy).

Replicas are processes of their own. With --fabric shm one NIC process serves them all; with
tcp each has a NIC process of its own, and those talk over loopback TCP. NICs and the client
ask for real-time priority in all modes, replicas never do: so only what the replicas'
processors take part in is what differs.

It starts all processes itself and ends them, also when it is killed.`,
		Example: `  ostro bench hyperloop
  ostro bench hyperloop --replicas 3 --sizes 128 --load busy
  ostro bench hyperloop --primitives gCAS --replicas 3 --json
  ostro bench hyperloop --fabric tcp --replicas 3,5,7 --plot hyperloop.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, hyperClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureHyper(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.fabric, "fabric", "shm", "shm (one NIC process for all) or tcp (one for each)")
	fl.IntSliceVar(&f.replicas, "replicas", []int{3, 5, 7}, "group sizes; all primitives on the first, gWRITE on the others")
	fl.IntSliceVar(&f.sizes, "sizes", []int{128, 512, 2048, 8192}, "bytes of a gWRITE, a gMEMCPY, a record's entry")
	fl.StringSliceVar(&f.primitives, "primitives", hyperPrimitives, "what to measure")
	fl.StringSliceVar(&f.modes, "modes", []string{"chain", "naive-events", "naive-polling"}, "ways to run a group; ratios are to the first, chain")
	fl.StringSliceVar(&f.loads, "load", []string{"idle", "busy"}, "idle, busy")
	fl.IntVar(&f.busy, "busy", 10, "busy processes a core")
	fl.IntVar(&f.ops, "ops", 10_000, "operations of a round of latencies, if --duration is not over before")
	fl.DurationVar(&f.duration, "duration", time.Second, "longest round, unless so few operations fit that there would be no tail")
	fl.IntVar(&f.rounds, "rounds", 3, "rounds of each case in each mode")
	fl.IntVar(&f.window, "window", 64, "operations in flight where throughput is measured")
	fl.IntVar(&f.slots, "slots", 128, "operations that replicas have requests posted for")
	fl.IntVar(&f.priority, "realtime", 10, "real-time priority of NICs, and one less of the client; 0 is none")
	return cmd
}

// What is measured. Append is of a record with one entry; a transaction is that and
// ExecuteAndAdvance. Throughput is gWRITEs with a window full of them in flight.
const (
	gWrite     = "gWRITE"
	gCopy      = "gMEMCPY"
	gCAS       = "gCAS"
	txnAppend  = "Append"
	txnExecute = "transaction"
	throughput = "throughput"
)

var hyperPrimitives = []string{gWrite, gCopy, gCAS, txnAppend, txnExecute, throughput}

func (f hyperFlags) check() error {
	switch {
	case f.fabric != "shm" && f.fabric != "tcp":
		return fmt.Errorf("--fabric %q is neither shm nor tcp", f.fabric)
	case f.ops < 1 || f.rounds < 1 || f.window < 1 || f.slots < f.window || f.duration <= 0:
		return fmt.Errorf("--ops, --rounds, --window and --duration must be at least 1, and --slots at least --window")
	case f.busy < 1:
		return fmt.Errorf("--busy %d: at least one process a core; --load idle does without", f.busy)
	case f.priority != 0 && (f.priority < 2 || f.priority > 99):
		return fmt.Errorf("--realtime %d: 2 to 99, or 0 for none", f.priority)
	}
	for _, list := range []struct {
		flag         string
		given, known []string
	}{
		{"primitives", f.primitives, hyperPrimitives},
		{"modes", f.modes, []string{string(group.Chain), string(group.NaiveEvents), string(group.NaivePolling), string(group.FanOut)}},
		{"load", f.loads, []string{idle, contended}},
	} {
		if len(list.given) == 0 {
			return fmt.Errorf("--%s is empty", list.flag)
		}
		for _, word := range list.given {
			if !slices.Contains(list.known, word) {
				return fmt.Errorf("--%s %q: use %s", list.flag, word, strings.Join(list.known, ", "))
			}
		}
	}
	for _, n := range f.replicas {
		if n < 1 || n > group.MaxReplicas {
			return fmt.Errorf("--replicas %d: 1 to %d", n, group.MaxReplicas)
		}
	}
	for _, n := range f.sizes {
		if n < 8 || n > maxHyperBytes {
			return fmt.Errorf("--sizes %d: 8 to %d", n, maxHyperBytes)
		}
	}
	if len(f.replicas) == 0 || len(f.sizes) == 0 {
		return fmt.Errorf("--replicas and --sizes must not be empty")
	}
	return nil
}

const (
	idle      = "idle"
	contended = "busy"

	maxHyperBytes = 64 << 10
)

// hyperCase is one thing that is measured in every mode.
type hyperCase struct {
	Primitive string `json:"primitive"`
	Bytes     int    `json:"bytes"`
	Replicas  int    `json:"replicas"`
	Load      string `json:"load"`
}

func (c hyperCase) String() string {
	return fmt.Sprintf("%s %d B, %d replicas, %s", c.Primitive, c.Bytes, c.Replicas, c.Load)
}

// cases lists what the paper measured: every primitive on the first group size,
// gWRITE on the others.
func (f hyperFlags) cases() []hyperCase {
	var all []hyperCase
	for _, load := range f.loads {
		for i, n := range f.replicas {
			for _, primitive := range f.primitives {
				if i > 0 && primitive != gWrite {
					continue
				}
				sizes := f.sizes
				if primitive == gCAS {
					sizes = []int{8}
				}
				for _, bytes := range sizes {
					all = append(all, hyperCase{primitive, bytes, n, load})
				}
			}
		}
	}
	return all
}

func (f hyperFlags) busyProcesses() int { return f.busy * runtime.NumCPU() }
