package bench

// Claim: tenants that push small functions to their data pay little for being kept apart, and gain wherever an operation
// would take several trips; whoever misbehaves hurts nobody else.
//
// Splinter (OSDI '18; chapter 4 of the dissertation): 8 cores of an E5-2640v4 for requests, one for management and one for
// whoever misbehaves, kernel bypass at 40 Gbps, functions in Rust; 1,024 tenants with a million records of 30 B keys and 100 B
// values each, YCSB-B. A get by a function costs 19% of the throughput; aggregates over 4 records 1.33x the throughput and 0.62x
// the median latency of the client's; TAO 2.8 million operations a second by functions and 3.2 with gets beside them. Ours: functions in
// WebAssembly, server and clients on the same two cores, TCP over loopback.
//
// Refuted by: a get by a function that loses more than a quarter of the throughput at 1,024 tenants and equal batches; aggregates over
// 4 records below 1.3x the throughput, above 0.65x the median, or below 3x Redis' Lua; a mix of TAO in which functions and gets
// together do not beat either; endless loops that others feel: at one in a million operations less throughput or twice the 99th
// percentile, at one in a thousand three times the 99.9th; 10,000 functions that do not fit, or first calls above 5 ms.

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

const splinterClaim = "functions of 1,024 tenants cost a get a quarter of its throughput at most (19% in the paper), aggregate 1.3x as much as clients can, and never hold up others"

type splinterFlags struct {
	commonFlags
	serverFlags
	parts    []string
	records  count
	value    int
	duration time.Duration
	rounds   int
	tenants  []int
	batch    int
	batches  []int
	window   int
	skew     float64
	skews    []float64
	loads    []int
	yields   []int
	hostile  []int
	kinds    []string
	// kindsEvery is how many operations there are for each bad deed in kinds.
	kindsEvery int
	sizes      []int
	orders     []int
	objects    int
	edges      int
	limit      int
	install    int
	first      int
}

var splinterParts = parts[*splinter]{
	{"get", (*splinter).measureGet},
	{"tenants", (*splinter).measureTenants},
	{"skew", (*splinter).measureSkew},
	{"long", (*splinter).measureLong},
	{"hostile", (*splinter).measureHostile},
	{"kinds", (*splinter).measureKinds},
	{"aggregate", (*splinter).measureAggregate},
	{"compute", (*splinter).measureCompute},
	{"tao", (*splinter).measureTAO},
	{"install", (*splinter).measureInstall},
}

func splinterCommand() *cobra.Command {
	f := splinterFlags{records: 200e3}
	cmd := &cobra.Command{
		Use:   "splinter",
		Short: "Functions of tenants beside plain operations, clients that do the work, and Redis' Lua",
		Long: `Measures what Splinter claims, in parts:

get        gets and puts (YCSB-B), plain and by functions, by the size of a batch, and latencies at the same loads; Redis' GET and FCALL beside them.
tenants    the same by the number of tenants.
skew       some tenants call more than others: functions at home with stealing, at home without, and wherever there is room.
long       one call in seven makes 128 gets: the others' latency by how often it yields.
hostile    functions that never end, begun at one in a thousand to one in a million operations by tenants of their own: what the others feel.
kinds      what else hostile tenants can do, each beside the others' usual life: loop, recursion, memory, response, hostcalls, trap, malformed modules, and modules that take long to compile.
aggregate  the sum over 2 to 32 records that another record lists: by the client in two trips, by a function, by Redis' FCALL.
compute    the sum of two records to the power n: where clients had better do it themselves.
tao        60% objects, 40% ranges of associations: by gets, by functions, by both; Redis with Lua.
install    10,000 functions: time, memory, first calls after a restart.

Rounds of what is compared alternate. All parts but skew and install share a server and its tenants. Redis is left out with --redis-program ''.`,
		Example: `  ostro bench splinter
  ostro bench splinter --parts get,tenants --rounds 9
  ostro bench splinter --parts hostile --duration 4s --hostile 1000,1000000
  ostro bench splinter --plot splinter.svg --json > splinter.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, splinterClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureSplinter(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	f.addOstro(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.redisProgram, "redis-program", "redis-server", "the redis-server to start beside; empty: none")
	fl.StringSliceVar(&f.parts, "parts", splinterParts.names(), "what to measure")
	fl.Var(&f.records, "records", "records of all tenants together")
	fl.IntVar(&f.value, "value", 100, "bytes of a value; keys have 30")
	fl.DurationVar(&f.duration, "duration", 500*time.Millisecond, "length of each round; those of hostile and kinds last twice as long")
	fl.IntVar(&f.rounds, "rounds", 3, "rounds of each case; hostile has three times as many")
	fl.IntSliceVar(&f.tenants, "tenants", []int{1, 8, 64, 256, 1024}, "numbers of tenants in tenants; all other parts have the most")
	fl.IntVar(&f.batch, "batch", 16, "operations that a client sends at once, where batches are not what is compared")
	fl.IntSliceVar(&f.batches, "batches", []int{1, 16, 64}, "the same in get")
	fl.IntVar(&f.window, "window", 32, "batches under way at once")
	fl.Float64Var(&f.skew, "skew", 0.1, "skew of the load over tenants; over records it is 0.99")
	fl.Float64SliceVar(&f.skews, "skews", []float64{0, 0.5, 0.9, 0.99}, "the same in skew")
	fl.IntSliceVar(&f.loads, "loads", []int{30, 60, 90}, "offered loads for latencies in get, in percent of what functions serve at most; 0 to leave them out")
	fl.IntSliceVar(&f.yields, "yields", []int{0, 128, 32, 8, 1}, "gets between two yields in long; 0: never")
	fl.IntSliceVar(&f.hostile, "hostile", []int{1e6, 1e5, 1e4, 1e3}, "operations for each that never ends in hostile; every round has at least one, so short ones have more of them")
	fl.StringSliceVar(&f.kinds, "kinds", splinterKinds, "what hostile tenants do in kinds")
	fl.IntVar(&f.kindsEvery, "kinds-every", 1000, "operations for each of that; modules are installed one at a time by each of eight tenants")
	fl.IntSliceVar(&f.sizes, "sizes", []int{2, 4, 8, 16, 32}, "records that are summed up in aggregate")
	fl.IntSliceVar(&f.orders, "orders", []int{1, 100, 1000, 5000, 20000}, "multiplications of an operation in compute")
	fl.IntVar(&f.objects, "objects", 100, "objects of each tenant's graph in tao")
	fl.IntVar(&f.edges, "edges", 4, "associations of each object")
	fl.IntVar(&f.limit, "limit", 10, "associations that a range asks for")
	fl.IntVar(&f.install, "functions", 10_000, "functions in install")
	fl.IntVar(&f.first, "first-calls", 500, "functions that are called after the restart in install")
	return cmd
}

func (f splinterFlags) check() error {
	if err := splinterParts.check(f.parts); err != nil {
		return err
	}
	for _, kind := range f.kinds {
		if !slices.Contains(splinterKinds, kind) {
			return fmt.Errorf("--kinds %q: use %s", kind, strings.Join(splinterKinds, ", "))
		}
	}
	switch {
	case !positive(f.rounds, f.kindsEvery, f.window, f.batch, f.objects, f.edges, f.limit, f.install, f.first) || !positive(f.tenants...) || !positive(f.batches...) ||
		!positive(f.hostile...) || !positive(f.sizes...) || !positive(f.orders...):
		return errors.New("--rounds, --window, --batch, --batches, --tenants, --hostile, --kinds-every, --sizes, --orders, --objects, --edges, --limit, --functions and --first-calls must be at least 1")
	case max(f.batch, slices.Max(f.batches)) > mostBatch:
		return fmt.Errorf("--batch and --batches: at most %d", mostBatch)
	case f.value < 8:
		return fmt.Errorf("--value %d: at least 8, for a number", f.value)
	case f.duration <= 0:
		return errors.New("--duration must be positive")
	case slices.Max(f.sizes) > 1000:
		return errors.New("--sizes: at most 1000")
	case f.edges > mostEdges:
		return fmt.Errorf("--edges %d: at most %d, so that a list is one record", f.edges, mostEdges)
	case f.edges >= f.objects:
		return fmt.Errorf("--edges %d: less than there are objects, which are %d", f.edges, f.objects)
	case slices.Max(f.tenants) > 9000:
		return errors.New("--tenants: at most 9000")
	}
	for _, n := range f.loads {
		if n < 0 || n > 99 {
			return fmt.Errorf("--loads %d: 1 to 99 percent, or 0 for none", n)
		}
	}
	for _, theta := range append([]float64{f.skew}, f.skews...) {
		if theta < 0 || theta > 2 {
			return fmt.Errorf("--skew %g: 0 to 2", theta)
		}
	}
	return nil
}

// most is how many tenants most parts have.
func (f splinterFlags) most() int { return slices.Max(f.tenants) }

// crowds are the numbers of tenants that are measured, in their order.
func (f splinterFlags) crowds() []int { return slices.Sorted(slices.Values(f.tenants)) }

// splinter is the experiment while it runs.
type splinter struct {
	f      splinterFlags
	p      *progress
	out    *splinterOutcome
	traces workload.Traces
	server *splinterServer // that most parts share
	redis  *target         // nil: not beside
}

func measureSplinter(ctx context.Context, p *progress, f splinterFlags) (*splinterOutcome, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	x := &splinter{f: f, p: p, out: &splinterOutcome{Tenants: f.most(), Records: uint64(f.records), ValueBytes: f.value, Batch: f.batch, Window: f.window}}
	defer x.stop()
	ended, err := splinterParts.measure(ctx, x, f.parts)
	switch {
	case errors.Is(err, context.Canceled) && len(x.out.Cells) > 0:
		x.out.EndedIn = ended // What was measured is worth telling.
	case err != nil:
		return nil, err
	}
	return x.out, nil
}

// shared is the server of most parts, with modules that tenants of it have.
func (x *splinter) shared(ctx context.Context, modules ...string) (s *splinterServer, err error) {
	if x.server == nil {
		if x.server, err = x.startSplinter(ctx, x.f.most()); err != nil {
			return nil, err
		}
	}
	return x.server, x.server.install(x.p, modules...)
}

// beside is the Redis of the run; nil if there is to be none.
func (x *splinter) beside(ctx context.Context) (*target, error) {
	if x.redis != nil || x.f.redisProgram == "" {
		return x.redis, nil
	}
	t, err := redisServer(x.f.redisProgram, nil).start(ctx)
	if err != nil {
		return nil, err
	}
	if err := giveLua(t.Addr); err != nil {
		t.stop()
		return nil, err
	}
	x.redis, x.out.Redis = t, t.Version
	return t, nil
}

func (x *splinter) stop() {
	if x.server != nil {
		x.server.stop()
	}
	if x.redis != nil {
		x.redis.stop()
	}
}
