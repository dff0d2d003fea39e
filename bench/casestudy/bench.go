package casestudy

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
)

// benchFlags are what the user of a benchmark decides.
type benchFlags struct {
	modes, loads []string
	replicas     int
	records      int
	valueBytes   int
	ops          int
	duration     time.Duration
	rounds       int
	busy         int
	priority     int
	dir          string
	json         bool
}

const (
	idle      = "idle"
	contended = "busy"
)

func parseFlags(s Study, args []string, w io.Writer) (benchFlags, error) {
	var f benchFlags
	var modes, loads string
	fl := flag.NewFlagSet("bench", flag.ContinueOnError)
	fl.SetOutput(w)
	fl.Usage = func() {
		fmt.Fprintf(w, "Measure updates of YCSB-A on %s, replicated by a group: by the replicas' NICs (chain) and by\n"+
			"their programs, which sleep until a message comes (naive-events) or look for one without end\n"+
			"(naive-polling); idle, and beside processes that compute without end (busy).\n\n", s.Name)
		fl.PrintDefaults()
	}
	fl.StringVar(&modes, "modes", "chain,naive-events,naive-polling", "ways to run the group; ratios are to the first")
	fl.StringVar(&loads, "load", "idle,busy", "idle, busy")
	fl.IntVar(&f.replicas, "replicas", 3, "replicas")
	fl.IntVar(&f.records, "records", 10_000, "records; the paper has 100,000")
	fl.IntVar(&f.valueBytes, "value", 1024, "bytes of a value")
	fl.IntVar(&f.ops, "ops", 20_000, "operations of a round, half of them updates, if -duration is not over before")
	fl.DurationVar(&f.duration, "duration", 4*time.Second, "longest round")
	fl.IntVar(&f.rounds, "rounds", 2, "rounds of each mode and load")
	fl.IntVar(&f.busy, "busy", 10, "busy processes a core")
	fl.IntVar(&f.priority, "realtime", 10, "SCHED_RR priority of the NIC, and one less of the front end; 0 is none")
	fl.StringVar(&f.dir, "dir", fastDirectory(), "where replicas' memory lies; in RAM a flush costs as little as it does on NVM")
	fl.BoolVar(&f.json, "json", false, "write the result as JSON")
	if err := fl.Parse(args); err != nil {
		return f, err
	}
	f.modes, f.loads = strings.Split(modes, ","), strings.Split(loads, ",")
	return f, f.check(fl.Args())
}

func fastDirectory() string {
	const shared = "/dev/shm"
	if st, err := os.Stat(shared); err == nil && st.IsDir() {
		return shared
	}
	return os.TempDir()
}

func (f benchFlags) check(rest []string) error {
	known := []string{string(group.Chain), string(group.NaiveEvents), string(group.NaivePolling), string(group.FanOut)}
	for _, m := range f.modes {
		if !slices.Contains(known, m) {
			return fmt.Errorf("-modes %q: use %s", m, strings.Join(known, ", "))
		}
	}
	for _, l := range f.loads {
		if l != idle && l != contended {
			return fmt.Errorf("-load %q: use idle, busy", l)
		}
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag; see -help", rest[0])
	case f.replicas < 1 || f.replicas > group.MaxReplicas:
		return fmt.Errorf("-replicas %d: use 1 to %d", f.replicas, group.MaxReplicas)
	case f.records < 1 || f.valueBytes < 8 || f.ops < 2 || f.rounds < 1 || f.duration <= 0 || f.busy < 1:
		return errors.New("-records, -ops, -rounds, -duration and -busy must be positive, and -value at least 8")
	case f.priority != 0 && (f.priority < 2 || f.priority > 99):
		return fmt.Errorf("-realtime %d: use 2 to 99, or 0 for none", f.priority)
	}
	return nil
}

// Bench is the main function of a study's benchmark.
func Bench(s Study) {
	f, err := parseFlags(s, os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = runBench(context.Background(), s, f, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runBench(ctx context.Context, s Study, f benchFlags, w io.Writer) (err error) {
	r := newReport(s, f)
	if err := r.measure(ctx, s, f); err != nil {
		return err
	}
	if f.json {
		return r.writeJSON(w)
	}
	r.write(w)
	return nil
}

// measure runs all modes by turns on the same replicas.
func (r *Report) measure(ctx context.Context, s Study, f benchFlags) (err error) {
	dir, err := os.MkdirTemp(f.dir, "ostro-study-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	var b busy
	if slices.Contains(f.loads, contended) {
		if b, err = startBusy(f.busy); err != nil {
			return err
		}
		defer b.kill()
	}
	p := Place{Dir: dir, Replicas: f.replicas, Memory: s.memoryFor(f), Log: s.Log}
	c, err := startCluster(p, f.priority)
	if err != nil {
		return err
	}
	defer c.kill()
	if f.priority > 0 { // Last: what is started later would have it, too.
		r.RealTime = realTime(f.priority-1) == nil
	}
	y := newYCSB(f.records, f.valueBytes)
	filled := false
	for round := range f.rounds {
		for _, load := range f.loads {
			for _, mode := range f.modes {
				fmt.Fprintf(os.Stderr, "round %d of %d, %s, %s\n", round+1, f.rounds, load, mode)
				m := measurement{study: s, flags: f, cluster: c, busy: b, ycsb: y, fill: !filled}
				took, err := m.run(ctx, group.Mode(mode), load == contended)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", load, mode, err)
				}
				filled = true
				r.add(load, mode, took)
			}
		}
	}
	return nil
}

// memoryFor is what replicas need for so many records.
func (s Study) memoryFor(f benchFlags) uint64 {
	data := uint64(f.records) * uint64(f.valueBytes+keyBytes)
	const page = 4096
	return max(s.Memory, 4*data+s.Log+64<<20) &^ (page - 1)
}

// measurement is one round of one mode.
type measurement struct {
	study   Study
	flags   benchFlags
	cluster *cluster
	busy    busy
	ycsb    *ycsb
	fill    bool
}

// warmUp operations fill caches and page tables before the clock starts.
const warmUp = 400

func (m measurement) run(ctx context.Context, mode group.Mode, busy bool) (took []time.Duration, err error) {
	place := m.cluster.place
	place.Mode = mode
	db, err := openFront(ctx, m.study, place, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if m.fill {
		if err := m.ycsb.fill(db); err != nil {
			return nil, err
		}
	}
	if _, err := m.ycsb.run(db, warmUp, m.flags.duration/4); err != nil {
		return nil, err
	}
	if busy {
		if err := m.busy.set(true); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, m.busy.set(false)) }()
	}
	return m.ycsb.run(db, m.flags.ops, m.flags.duration)
}
