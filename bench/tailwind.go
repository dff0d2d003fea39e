package bench

// Claim: a primary that writes its log straight into its backups' memory serves more, and
// answers writes sooner, than one whose backups receive, copy and answer, with the same three copies
// of everything. The backups' processors are what is saved, and with them, when every
// node is primary and backup at once, the primaries'.
//
// Tailwind (ATC '18, §5): 4 servers of 35 CloudLab machines (8-core Xeon D-1548, 64 GB, ConnectX-3 10
// Gbps), 3 replicas, 100 B objects with 30 B keys, YCSB with zipf 0.99: throughput at 50% writes 1.7x,
// median of a write 2x and 99th percentile 3x lower under load, up to 4x less processor time at the
// backups; nothing gained with 5% writes. Ours: all nodes, clients and NIC on the same two cores,
// replication by processes of their own over shared memory or loopback TCP.
//
// Refuted by: at 50% writes less than 1.3x of the throughput of `replication: rpc` in the same run,
// a median less than 1.5x or a 99th percentile less than 2x lower, or backups that take more
// than a third of the processor time for a write.

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

const tailwindClaim = "one-sided replication serves more and answers writes sooner than replication by calls: 1.7x, 2x, 3x in the paper at 50% writes"

type tailwindFlags struct {
	commonFlags
	serverFlags
	nodes     int
	records   count
	value     int
	duration  time.Duration
	rounds    int
	clients   []int
	writes    []int
	primaries []int
	modes     []string
	loads     []int
	tries     int
}

// The ways to replicate, as arguments of `ostro cluster dev`. The last is the
// baseline of all ratios.
var tailwindModes = map[string][]string{
	"shm": {"--replication", "one-sided", "--fabric", "shm"},
	"tcp": {"--replication", "one-sided", "--fabric", "tcp"},
	"rpc": {"--replication", "rpc", "--fabric", "tcp"},
}

func tailwindCommand() *cobra.Command {
	f := tailwindFlags{records: 50e3}
	cmd := &cobra.Command{
		Use:   "tailwind",
		Short: "Measure replication by one-sided writes beside replication by calls",
		Long: `Starts a cluster for every mode: one-sided writes through shared memory (shm), through TCP (tcp), and
calls that a backup's program executes (rpc). All keep three copies of everything. The same loads run on
each in turn, with more and more clients, writes and active primaries. Then operations arrive at fixed rates,
the same for all modes: the latency of a write against the load, with the fewest and with the most primaries.
At the end stands what must hold, and whether it did. The whole takes five minutes or so; it says how far it is.

With one active primary the other nodes' processor time is the backups'; a NIC process is shown
apart. With several, every node is both.`,
		Example: `  ostro bench tailwind
  ostro bench tailwind --modes shm,rpc --writes 50 --clients 64 --primaries 4 --rounds 9     half the time, fewer figures, less scatter
  ostro bench tailwind --plot tailwind.svg --json > tailwind.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, tailwindClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureTailwind(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	f.addOstro(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.nodes, "nodes", 4, "nodes of each cluster")
	fl.Var(&f.records, "records", "records loaded into each active primary before the clock starts")
	fl.IntVar(&f.value, "value", 100, "bytes of a value")
	fl.DurationVar(&f.duration, "duration", 500*time.Millisecond, "length of each round")
	fl.IntVar(&f.rounds, "rounds", 3, "rounds of each case in each mode")
	fl.IntSliceVar(&f.clients, "clients", []int{1, 64}, "connections, one request at a time on each")
	fl.IntSliceVar(&f.writes, "writes", []int{5, 50, 100}, "percent of the operations that write")
	fl.IntSliceVar(&f.primaries, "primaries", []int{1, 2, 4}, "nodes that serve the load; the first with all numbers of clients, the others with the most")
	fl.IntSliceVar(&f.loads, "loads", []int{50, 80}, "offered loads for latencies, in percent of what the last mode serves at most; 0 to leave them out")
	fl.IntVar(&f.tries, "tries", 5, "most tries of a round at a fixed rate: one during which the host of a virtual machine held it up is run again")
	fl.StringSliceVar(&f.modes, "modes", []string{"shm", "tcp", "rpc"}, "ways to replicate; ratios are to the last")
	return cmd
}

func (f tailwindFlags) check() error {
	switch {
	case f.nodes < 1+backups:
		return fmt.Errorf("--nodes %d: three copies need three nodes", f.nodes)
	case f.rounds < 1 || f.value < 1 || f.duration <= 0 || f.tries < 1:
		return errors.New("--rounds, --value, --duration and --tries must be at least 1")
	case len(f.clients) == 0 || len(f.writes) == 0 || len(f.primaries) == 0 || len(f.modes) == 0:
		return errors.New("--clients, --writes, --primaries and --modes must not be empty")
	}
	for _, n := range f.primaries {
		if n < 1 || n > f.nodes {
			return fmt.Errorf("--primaries %d: 1 to %d", n, f.nodes)
		}
	}
	for _, n := range f.writes {
		if n < 1 || n > 100 {
			return fmt.Errorf("--writes %d: 1 to 100 percent", n)
		}
	}
	for _, n := range f.clients {
		if n < 1 {
			return fmt.Errorf("--clients %d: at least 1", n)
		}
	}
	for _, n := range f.loads {
		if n < 0 || n > 99 {
			return fmt.Errorf("--loads %d: 1 to 99 percent, or 0 for none", n)
		}
	}
	for _, m := range f.modes {
		if tailwindModes[m] == nil {
			return fmt.Errorf("--modes %q: use shm, tcp or rpc", m)
		}
	}
	return nil
}

// tailwindCase is one load that is run in every mode.
type tailwindCase struct {
	Writes    int `json:"writes_percent"`
	Primaries int `json:"primaries"`
	Clients   int `json:"clients"`
	// Offered is how many operations arrive in a second, whatever becomes of them; 0: each
	// client sends one after the other.
	Offered float64 `json:"offered_per_second,omitempty"`
}

func (c tailwindCase) String() string {
	if c.Offered > 0 {
		return fmt.Sprintf("%d%% writes, %.0f/s on %s", c.Writes, c.Offered, many(c.Primaries, "primary", "primaries"))
	}
	return fmt.Sprintf("%d%% writes, %s on %s", c.Writes, many(c.Clients, "client", "clients"), many(c.Primaries, "primary", "primaries"))
}

func (f tailwindFlags) cases() []tailwindCase {
	var all []tailwindCase
	for _, w := range f.writes {
		for i, n := range f.primaries {
			clients := f.clients
			if i > 0 {
				clients = []int{slices.Max(clients)}
			}
			for _, c := range clients {
				all = append(all, tailwindCase{Writes: w, Primaries: n, Clients: max(c, n)})
			}
		}
	}
	return all
}

// stage is a cluster in one mode, loaded.
type stage struct {
	mode    string
	cluster *cluster
	doors   []door // the i-th is that of the i-th active primary
	traces  workload.Traces
}

func measureTailwind(ctx context.Context, p *progress, f tailwindFlags) (*tailwindOutcome, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	out := &tailwindOutcome{Nodes: f.nodes, Records: uint64(f.records), ValueBytes: f.value, Modes: f.modes}
	var stages []*stage
	defer func() {
		for _, s := range stages {
			s.cluster.stop()
		}
	}()
	for _, mode := range f.modes {
		p.begin("start a cluster: %s", mode)
		s, err := f.stage(ctx, mode)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", mode, err)
		}
		stages = append(stages, s)
		for _, d := range s.doors {
			if err := f.load(ctx, p, d); err != nil {
				return nil, fmt.Errorf("load %s: %w", mode, err)
			}
		}
	}
	left := &countdown{steps: f.steps()}
	for _, c := range f.cases() {
		cells, err := f.cells(ctx, p, left, stages, c)
		if err != nil {
			return nil, err
		}
		out.Cells = append(out.Cells, cells...)
		most := cells[len(cells)-1].of(tailwindRate) * float64(c.Primaries)
		for _, percent := range f.loadsOf(c) {
			paced := c
			paced.Offered = most * float64(percent) / 100
			if cells, err = f.cells(ctx, p, left, stages, paced); err != nil {
				return nil, err
			}
			out.Paced = append(out.Paced, cells...)
		}
	}
	out.judge()
	return out, nil
}

// loadsOf are the loads at which latencies of a case are looked at: with the most clients, and the fewest or
// the most primaries.
func (f tailwindFlags) loadsOf(c tailwindCase) []int {
	if c.Clients < slices.Max(f.clients) || c.Primaries > slices.Min(f.primaries) && c.Primaries < slices.Max(f.primaries) {
		return nil
	}
	return given(f.loads)
}

// steps is how many rounds there will be, those that are run again counted once.
func (f tailwindFlags) steps() (n int) {
	for _, c := range f.cases() {
		n += (1 + len(f.loadsOf(c))) * f.rounds * len(f.modes)
	}
	return n
}

// cells runs a case in all modes, in turn.
func (f tailwindFlags) cells(ctx context.Context, p *progress, left *countdown, stages []*stage, c tailwindCase) ([]tailwindCell, error) {
	cells := make([]tailwindCell, len(stages))
	for round := range f.rounds {
		for i, s := range stages {
			p.begin("%s: %s, %s, round %d of %d", left.step(), c, s.mode, round+1, f.rounds)
			r, err := s.calmRound(ctx, f, c)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c, s.mode, err)
			}
			cells[i].tailwindCase, cells[i].Mode = c, s.mode
			cells[i].Rounds = append(cells[i].Rounds, r)
		}
	}
	return cells, nil
}

// stage starts a cluster and finds a hash tag for each of its nodes.
func (f tailwindFlags) stage(ctx context.Context, mode string) (*stage, error) {
	program, err := f.program()
	if err != nil {
		return nil, err
	}
	c, err := startCluster(ctx, program, f.nodes, append(slices.Clone(tailwindModes[mode]), strings.Fields(f.ostroArgs)...)...)
	if err != nil {
		return nil, err
	}
	s := &stage{mode: mode, cluster: c}
	for _, n := range c.Nodes[:slices.Max(f.primaries)] {
		tag, err := n.tag()
		if err != nil {
			c.stop()
			return nil, err
		}
		s.doors = append(s.doors, door{addr: n.Redis, tag: tag})
	}
	return s, nil
}

// tag finds a hash tag whose keys the node serves.
func (n devNode) tag() (string, error) {
	const tries = 10_000
	for i := range tries {
		tag := fmt.Sprintf("b%04d", i)
		mine, err := n.serves(tag)
		if mine || err != nil {
			return tag, err
		}
	}
	return "", fmt.Errorf("%s serves none of %d hash tags", n.ID, tries)
}

func (f tailwindFlags) load(ctx context.Context, p *progress, d door) error {
	value := make([]byte, f.value)
	workload.FillValue(value, 0, 0)
	return fillDoor(ctx, p, d, workload.Tagged30, 0, uint64(f.records), value)
}

// calmRound runs a case once; at a fixed rate, where every operation counts that is due while a host holds the machine up, until it
// was not.
func (s *stage) calmRound(ctx context.Context, f tailwindFlags, c tailwindCase) (tailwindRound, error) {
	all, best, err := calmest(f.tries, 0, func() (tailwindRound, time.Duration, bool, error) {
		r, err := s.round(ctx, f, c)
		return r, r.Stolen, c.Offered == 0, err
	})
	if err != nil {
		return tailwindRound{}, err
	}
	r := all[best]
	r.Tries = len(all)
	return r, nil
}

// round runs a case once.
func (s *stage) round(ctx context.Context, f tailwindFlags, c tailwindCase) (tailwindRound, error) {
	value := make([]byte, f.value)
	workload.FillValue(value, 0, 0)
	mix := workload.Mix{Name: c.String(), Read: 100 - c.Writes, Update: c.Writes}
	ring, err := newRequests(mix, workload.Tagged30, value, 1, 1, 0)
	if err != nil {
		return tailwindRound{}, err
	}
	l, err := dialDoors(s.doors[:c.Primaries], c.Clients, 1, ring)
	if err != nil {
		return tailwindRound{}, err
	}
	defer l.close()
	chooser := s.traces.NewChooser(workload.Zipfian, uint64(f.records), 0)
	next := func(ids []uint32) int {
		chooser.Fill(ids, 0)
		return len(ids)
	}
	if _, err := l.run(ctx, min(warmUp, f.duration), next); err != nil {
		return tailwindRound{}, err
	}
	return s.measured(ctx, l, c, f.duration, next)
}

// measured is run with the processor time of all around it.
func (s *stage) measured(ctx context.Context, l *load, c tailwindCase, d time.Duration, next func([]uint32) int) (tailwindRound, error) {
	before, err := s.cpu(c.Primaries)
	if err != nil {
		return tailwindRound{}, err
	}
	var total loadTotal
	var late int
	calm := readMachineTime()
	if c.Offered > 0 {
		total, late, err = l.pacedRun(ctx, c.Offered, d, next)
	} else {
		total, err = l.run(ctx, d, next)
	}
	if err != nil {
		return tailwindRound{}, err
	}
	stolen := readMachineTime().stolen - calm.stolen
	after, err := s.cpu(c.Primaries)
	if err != nil {
		return tailwindRound{}, err
	}
	if total.Nulls > 0 {
		return tailwindRound{}, fmt.Errorf("%d of %d operations found no record", total.Nulls, total.Ops)
	}
	writes := float64(max(total.Writes, 1))
	return tailwindRound{
		OpsPerSecond: float64(total.Ops) / total.Elapsed.Seconds() / float64(c.Primaries),
		Put:          l.writes.Summary(),
		Late:         late,
		Stolen:       stolen,
		PrimaryCPU:   float64(after.primaries-before.primaries) / float64(total.Ops),
		BackupCPU:    float64(after.backups-before.backups) / writes,
		NICCPU:       float64(after.nic-before.nic) / writes,
	}, nil
}

// clusterCPU is the processor time of a cluster's processes by their part.
type clusterCPU struct{ primaries, backups, nic time.Duration }

func (s *stage) cpu(primaries int) (c clusterCPU, err error) {
	for i, n := range s.cluster.Nodes {
		d, err := exactCPUTime(n.Pid)
		if err != nil {
			return c, err
		}
		if i < primaries {
			c.primaries += d
		} else {
			c.backups += d
		}
	}
	if nic := s.cluster.NIC; nic != 0 {
		c.nic, err = exactCPUTime(nic)
	}
	return c, err
}
