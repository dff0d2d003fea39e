package bench

// Claim: after kill -9 a node with 10M records of 130 B serves all of them
// again within 10 s on 2 cores.
//
// RAMCloud and Tailwind recover in 1 to 2 s from many machines at once; this is one
// machine reading its own disk, the floor under every later figure.
//
// Refuted by: more than 10 s from start to the first PONG with 10M records, or any
// record that is missing or different afterwards.

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/bench/plot"
	"github.com/ostrodb/ostro/bench/workload"
)

const recoveryClaim = "10M records of 130 B are served again within 10 s of a restart after kill -9, on 2 cores"

type recoveryFlags struct {
	commonFlags
	serverFlags
	records    count
	value      int
	rounds     int
	durability string
	checkpoint bool
	coldCache  bool
}

func recoveryCommand() *cobra.Command {
	f := recoveryFlags{records: 10e6}
	cmd := &cobra.Command{
		Use:   "recovery-local",
		Short: "Kill a loaded server and time its recovery from its own disk",
		Long: `Starts a server, loads records, kills it with SIGKILL, starts it again, and takes the
time until it answers. Then reads back every record.`,
		Example: `  ostro bench recovery-local
  ostro bench recovery-local --records 1M --rounds 3
  ostro bench recovery-local --checkpoint          # with a checkpoint before the kill
  ostro bench recovery-local --cold-cache          # without the kernel's page cache; needs root`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, recoveryClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureRecovery(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	fl := cmd.Flags()
	fl.Var(&f.records, "records", "records to load")
	fl.IntVar(&f.value, "value", 100, "bytes of a value")
	fl.IntVar(&f.rounds, "rounds", 1, "how often to kill and restart")
	fl.StringVar(&f.durability, "durability", "everysec", "durability of the server: everysec or always")
	fl.BoolVar(&f.checkpoint, "checkpoint", false, "take a checkpoint before the kill")
	fl.BoolVar(&f.coldCache, "cold-cache", false, "drop the kernel's page cache before the restart (needs root)")
	fl.StringVar(&f.ostroProgram, "ostro-program", "", "the ostro to start (default: this one)")
	fl.StringVar(&f.ostroArgs, "ostro-args", "", "further arguments for ostro server")
	return cmd
}

// recoveryOutcome is what `ostro bench recovery-local` found.
type recoveryOutcome struct {
	Records     uint64          `json:"records"`
	RecordBytes int             `json:"record_bytes"`
	DiskBytes   int64           `json:"disk_bytes"`
	LoadRate    float64         `json:"load_ops_per_second"`
	Checkpoint  bool            `json:"checkpoint"`
	ColdCache   bool            `json:"cold_cache"`
	Rounds      []recoveryRound `json:"rounds"`
}

type recoveryRound struct {
	Ready    time.Duration `json:"ready_ns"` // from starting the process to its first PONG
	CPU      time.Duration `json:"cpu_ns"`
	Keys     uint64        `json:"keys"`
	ReadBack time.Duration `json:"read_back_ns"`
}

func measureRecovery(ctx context.Context, p *progress, f recoveryFlags) (*recoveryOutcome, error) {
	dir, err := makeDir("")
	if err != nil {
		return nil, fmt.Errorf("make a data directory: %w", err)
	}
	defer os.RemoveAll(dir)
	l, err := f.ostro(append([]string{"--durability", f.durability}, strings.Fields(f.ostroArgs)...))
	if err != nil {
		return nil, err
	}
	l.dir = dir
	t, err := l.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { t.stop() }()
	out := &recoveryOutcome{
		Records: uint64(f.records), RecordBytes: workload.Text30.Len() + f.value,
		Checkpoint: f.checkpoint, ColdCache: f.coldCache,
	}
	if err := out.load(ctx, p, t, f); err != nil {
		return nil, err
	}
	for range f.rounds {
		t.kill()
		if f.coldCache {
			if err := dropPageCache(); err != nil {
				return nil, err
			}
		}
		p.begin("recover %s records", grouped(int64(f.records)))
		start := time.Now()
		if t, err = l.start(ctx); err != nil {
			return nil, err
		}
		r := recoveryRound{Ready: time.Since(start)}
		if err := out.check(ctx, p, t, f.value, &r); err != nil {
			return nil, err
		}
		out.Rounds = append(out.Rounds, r)
	}
	return out, nil
}

func (o *recoveryOutcome) load(ctx context.Context, p *progress, t *target, f recoveryFlags) error {
	p.begin("load %s records", grouped(int64(o.Records)))
	value := make([]byte, f.value)
	workload.FillValue(value, 0, 0)
	start := time.Now()
	if err := fill(ctx, p, t, workload.Text30, 0, o.Records, value); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	o.LoadRate = float64(o.Records) / time.Since(start).Seconds()
	if f.checkpoint {
		p.begin("checkpoint")
		c, err := dialControl(t.Addr)
		if err != nil {
			return err
		}
		defer c.close()
		if _, err := c.do("SAVE"); err != nil {
			return fmt.Errorf("take a checkpoint: %w", err)
		}
	}
	o.DiskBytes = diskUse(t.proc.cmd.Dir)
	return nil
}

// check counts and reads back every record.
func (o *recoveryOutcome) check(ctx context.Context, p *progress, t *target, value int, r *recoveryRound) error {
	var err error
	if r.CPU, err = t.cpu(); err != nil {
		return err
	}
	c, err := dialControl(t.Addr)
	if err != nil {
		return err
	}
	defer c.close()
	if r.Keys, err = c.size(); err != nil {
		return err
	}
	if r.Keys != o.Records {
		return fmt.Errorf("%d of %d records came back", r.Keys, o.Records)
	}
	p.begin("read back %s records", grouped(int64(o.Records)))
	start := time.Now()
	e := expected{keys: workload.Text30, to: o.Records, value: value}
	err = e.verify(ctx, p, t.Addr)
	r.ReadBack = time.Since(start)
	return err
}

// diskUse is how many bytes of disk the files below dir occupy.
func diskUse(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // files come and go while the server runs
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += st.Blocks * 512
			} else {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

func dropPageCache() error {
	unix.Sync()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0); err != nil {
		return fmt.Errorf("--cold-cache: %w", err)
	}
	return nil
}

func (o *recoveryOutcome) tables() []table {
	t := table{
		title: fmt.Sprintf("Recovery of %s records of %d B, %s on disk, loaded at %s/s",
			grouped(int64(o.Records)), o.RecordBytes, bytesShort(o.DiskBytes), rate(o.LoadRate)),
		names: 1,
		head:  []string{"round", "ready after", "CPU", "records/s", "MB/s", "records back", "all read in"},
	}
	for i, r := range o.Rounds {
		s := r.Ready.Seconds()
		t.add(fmt.Sprint(i+1), short(r.Ready), short(r.CPU), rate(float64(r.Keys)/s),
			decimals(float64(o.DiskBytes)/1e6/s, 0), grouped(int64(r.Keys)), short(r.ReadBack))
	}
	return []table{t}
}

func (o *recoveryOutcome) notes() []string {
	cache := "the log was still in the kernel's page cache, as after a crash of the process alone"
	if o.ColdCache {
		cache = "the page cache was dropped before each restart"
	}
	return []string{
		"killed with SIGKILL right after the last acknowledged write of the load; every record was then read back and compared",
		cache,
	}
}

func (o *recoveryOutcome) chart(where string) []byte {
	s := plot.Series{Name: "seconds until ready"}
	c := plot.Bars{
		Title:    fmt.Sprintf("Recovery of %s records of %d B after kill -9", grouped(int64(o.Records)), o.RecordBytes),
		Subtitle: where, Unit: "seconds",
	}
	for i, r := range o.Rounds {
		c.Rows = append(c.Rows, fmt.Sprintf("round %d", i+1))
		s.Values = append(s.Values, r.Ready.Seconds())
	}
	c.Series = []plot.Series{s}
	return c.SVG()
}
