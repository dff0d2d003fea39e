package bench

// Claim: when a node dies, the others take over what it served: 1M objects of 100 B within 2 s after the
// death was detected, 10M within 10 s; and it is detected within 3 s.
//
// Tailwind (ATC '18, §5.6, Figure 11): recovery of 1M objects in 0.5 s and of 10M in 2.5 s on 10 machines, hardly
// different from replication by calls. Ours: the dead node's log is read, split, replayed and
// replicated again by three nodes that share two cores with each other, with etcd and with the
// client that looks for the records.
//
// Refuted by: more time than that, or a record that is missing or different afterwards.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/view"
)

const takeoverClaim = "others serve what a dead node did: 1M objects within 2 s after detection, 10M within 10 s, detection within 3 s"

type takeoverFlags struct {
	commonFlags
	serverFlags
	nodes   int
	records []string
	value   int
	rounds  int
	modes   []string
}

func takeoverCommand() *cobra.Command {
	f := takeoverFlags{}
	cmd := &cobra.Command{
		Use:   "recovery",
		Short: "Kill a node of a cluster and time how the others take over",
		Long: `Starts a cluster, loads records into one node, kills it with SIGKILL, and takes the time until its death is
detected (its lease has ended and heirs are named), until the log is fenced and planned, until the last heir serves
its part, and until all of it has as many copies as before. Then reads back every record from whoever serves it by then.`,
		Example: `  ostro bench recovery
  ostro bench recovery --records 10M --modes shm --rounds 1
  ostro bench recovery --records 1M --modes shm,rpc --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, takeoverClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureTakeover(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	f.addOstro(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.nodes, "nodes", 4, "nodes of the cluster")
	fl.StringSliceVar(&f.records, "records", []string{"1M", "10M"}, "records of the node that dies")
	fl.IntVar(&f.value, "value", 100, "bytes of a value")
	fl.IntVar(&f.rounds, "rounds", 1, "how often, each time with a new cluster")
	fl.StringSliceVar(&f.modes, "modes", []string{"shm", "rpc"}, "ways to replicate: shm, tcp, rpc")
	return cmd
}

// takeoverOutcome is what `ostro bench recovery` found.
type takeoverOutcome struct {
	Nodes      int             `json:"nodes"`
	ValueBytes int             `json:"value_bytes"`
	Rounds     []takeoverRound `json:"rounds"`
}

// takeoverRound is one death. All times are since the kill.
type takeoverRound struct {
	Mode     string        `json:"mode"`
	Records  uint64        `json:"records"`
	LoadRate float64       `json:"load_ops_per_second"`
	Detected time.Duration `json:"detected_ns"`
	Planned  time.Duration `json:"planned_ns"`
	Served   time.Duration `json:"served_ns"`
	Copied   time.Duration `json:"copied_ns"`
	Answered time.Duration `json:"answered_ns"` // to a client that asked for one of the records all the time
	ReadBack time.Duration `json:"read_back_ns"`
}

func measureTakeover(ctx context.Context, p *progress, f takeoverFlags) (*takeoverOutcome, error) {
	out := &takeoverOutcome{Nodes: f.nodes, ValueBytes: f.value}
	if f.nodes < 1+backups || f.rounds < 1 || f.value < 1 {
		return nil, errors.New("--nodes must be at least 3, --rounds and --value at least 1")
	}
	for _, text := range f.records {
		var n count
		if err := n.Set(text); err != nil {
			return nil, fmt.Errorf("--records: %w", err)
		}
		for range f.rounds {
			for _, mode := range f.modes {
				if tailwindModes[mode] == nil {
					return nil, fmt.Errorf("--modes %q: use shm, tcp or rpc", mode)
				}
				r, err := f.death(ctx, p, mode, uint64(n))
				if err != nil {
					return nil, fmt.Errorf("%s records, %s: %w", n, mode, err)
				}
				out.Rounds = append(out.Rounds, r)
			}
		}
	}
	return out, nil
}

// death is one round.
func (f takeoverFlags) death(ctx context.Context, p *progress, mode string, records uint64) (r takeoverRound, err error) {
	program, err := f.program()
	if err != nil {
		return r, err
	}
	p.begin("start a cluster: %s", mode)
	c, err := startCluster(ctx, program, f.nodes, append(slices.Clone(tailwindModes[mode]), strings.Fields(f.ostroArgs)...)...)
	if err != nil {
		return r, err
	}
	defer c.stop()
	w, err := watch(ctx, c.Etcd)
	if err != nil {
		return r, err
	}
	defer w.close()
	victim := c.Nodes[len(c.Nodes)-1]
	mine := keysOf(w.cache.Snapshot(), victim.ID, records)
	r = takeoverRound{Mode: mode, Records: records}

	p.begin("load %s records into %s, %s", grouped(int64(records)), victim.ID, mode)
	began := time.Now()
	if err := f.load(ctx, p, victim, mine); err != nil {
		return r, err
	}
	r.LoadRate = float64(records) / time.Since(began).Seconds()

	p.begin("let the disk have what was loaded, %s", mode)
	unix.Sync() // The kernel slows all down who write while much is not on the disk yet.

	p.begin("kill %s and wait for its heirs, %s", victim.ID, mode)
	killed := time.Now()
	if err := syscall.Kill(victim.Pid, syscall.SIGKILL); err != nil {
		return r, fmt.Errorf("kill %s: %w", victim.ID, err)
	}
	asker := make(chan error, 1)
	go func() {
		err := c.askUntilAnswered(ctx, mine.key(0))
		r.Answered = time.Since(killed)
		asker <- err
	}()
	if err := w.takeover(ctx, view.NodeID(victim.ID), killed, &r); err != nil {
		return r, err
	}
	if err := <-asker; err != nil {
		return r, err
	}
	// It is read back while it gets its copies: all of it is served.
	copied := make(chan error, 1)
	go func() {
		err := w.copied(ctx, view.NodeID(victim.ID))
		r.Copied = time.Since(killed)
		copied <- err
	}()
	p.begin("read back %s records, %s", grouped(int64(records)), mode)
	began = time.Now()
	err = mine.verify(ctx, p, w.cache.Snapshot(), c, f.value)
	r.ReadBack = time.Since(began)
	return r, errors.Join(err, <-copied)
}
