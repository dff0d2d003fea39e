package bench

// Claim: the engine as a Go library reads and updates in place at least as fast as
// FASTER's C++ on the same kind of machine, allocates nothing per operation, and its
// garbage collections do not grow with the data.
//
// FASTER's paper (SIGMOD '18): two sockets of 14 cores, 56 threads, 250M records
// of 8 B keys and values; 160 Mops/s in memory. Ours: 2 virtual cores, 10M records.
// There FASTER's own YCSB gives the figures in fasterMops, taken on such a machine
// once; they are a reference and no second measurement.
//
// Refuted by: ratio below 1.0 for ycsb-c and rmw-counter on 8 B records in
// memory with 2 workers; more than a trace of allocations per operation; a longest pause
// that grows with --records.

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/bench/workload"
)

const engineClaim = "reads and in-place updates at least as fast as FASTER in C++, no allocation per operation, pauses independent of the data"

type engineFlags struct {
	commonFlags
	records    count
	duration   time.Duration
	rounds     int
	workloads  []string
	filter     string
	quick      bool
	list       bool
	pin        bool
	dir        string
	budget     float64
	cpuprofile string
}

func engineCommand() *cobra.Command {
	f := engineFlags{records: 10e6}
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure the storage engine as a library, beside FASTER's figures",
		Long: `Runs YCSB mixes on the engine inside this process: no server, no network.

A run is named workload/KEYxVALUE/place/distribution/workers/batch, for example
ycsb-c/8x8/memory/zipf/2w/batch32. Places: memory (durability none), everysec
(a log on disk), budget (durability none, memory for a part of the data, the
rest on disk). Runs with batches name many keys at once, so that the cache
misses of their lookups overlap.`,
		Example: `  ostro bench engine
  ostro bench engine --quick
  ostro bench engine --filter 'ycsb-c/8x8/memory/.*/2w'
  ostro bench engine --filter rmw-counter --rounds 5 --plot counter.svg
  ostro bench engine --list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runEngine(cmd, f) },
	}
	f.commonFlags.add(cmd)
	fl := cmd.Flags()
	fl.Var(&f.records, "records", "records loaded before the clock starts")
	fl.DurationVar(&f.duration, "duration", time.Second, "length of each round")
	fl.IntVar(&f.rounds, "rounds", 1, "rounds of each run; medians are shown")
	fl.StringSliceVar(&f.workloads, "workloads", []string{"ycsb-c", "ycsb-b", "ycsb-a", "ycsb-f", "rmw-counter"}, "mixes to run")
	fl.StringVar(&f.filter, "filter", "", "only runs whose name matches this regular expression")
	fl.BoolVar(&f.quick, "quick", false, "a tenth of the records and of the time: for a first look")
	fl.BoolVar(&f.list, "list", false, "only list the names of the runs")
	fl.BoolVar(&f.pin, "pin", false, "keep each worker on one core")
	fl.StringVar(&f.dir, "dir", "", "directory for places on disk (a temporary one by default)")
	fl.Float64Var(&f.budget, "budget", 0.25, "memory of the place budget as a share of the data")
	fl.StringVar(&f.cpuprofile, "cpuprofile", "", "write a CPU profile, from behind the first load on, to this file")
	return cmd
}

func runEngine(cmd *cobra.Command, f engineFlags) error {
	if f.quick {
		f.records, f.duration = max(1, f.records/10), f.duration/10
	}
	cells, err := engineCells(f)
	if err != nil {
		return err
	}
	if f.list {
		for _, c := range cells {
			fmt.Fprintln(cmd.OutOrStdout(), c.name())
		}
		return nil
	}
	return experiment(cmd, engineClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
		return measureEngine(ctx, p, f, cells)
	})
}

// cell is one combination that is measured.
type cell struct {
	mix     workload.Mix
	shape   shape
	place   place
	dist    workload.Distribution
	workers int
	batch   int // keys named at once; 1 is one at a time
}

// shape is the size of a record.
type shape struct {
	keys  workload.Encoding
	value int
}

func (s shape) String() string { return fmt.Sprintf("%dx%d", s.keys.Len(), s.value) }

// place is where the records lie.
type place string

const (
	inMemory   place = "memory"
	onEverySec place = "everysec"
	onBudget   place = "budget"
)

func (c cell) name() string {
	batch := "single"
	if c.batch > 1 {
		batch = fmt.Sprintf("batch%d", c.batch)
	}
	return strings.Join([]string{c.mix.Name, c.shape.String(), string(c.place), c.dist.String(), fmt.Sprintf("%dw", c.workers), batch}, "/")
}

// engineCells lists the whole matrix, less what the filter drops. Runs on one
// loaded store stand together, reads first, for writes leave traces.
func engineCells(f engineFlags) ([]cell, error) {
	want, err := regexp.Compile(f.filter)
	if err != nil {
		return nil, fmt.Errorf("--filter: %w", err)
	}
	var mixes []workload.Mix
	for _, name := range f.workloads {
		m, err := workload.ParseMix(name)
		if err != nil {
			return nil, fmt.Errorf("--workloads: %w", err)
		}
		mixes = append(mixes, m)
	}
	var cells []cell
	for _, at := range []place{inMemory, onEverySec, onBudget} {
		for _, s := range []shape{{workload.Binary8, 8}, {workload.Binary8, 256}, {workload.Text30, 100}} {
			for _, m := range mixes {
				for _, c := range cellsOf(m, s, at) {
					if want.MatchString(c.name()) {
						cells = append(cells, c)
					}
				}
			}
		}
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("no run matches --filter %q; --list shows their names", f.filter)
	}
	return cells, nil
}

func cellsOf(m workload.Mix, s shape, at place) []cell {
	if m.Add > 0 && s.value != 8 {
		return nil // a counter has eight bytes
	}
	dists := []workload.Distribution{workload.Uniform, workload.Zipfian}
	batches := []int{1, 32}
	switch {
	case m.Latest:
		dists, batches = []workload.Distribution{workload.Latest}, []int{1}
	case m.Only(workload.Read):
		batches = []int{1, 16, 32}
		dists = append(dists, workload.Hot)
	}
	var cells []cell
	for _, b := range batches {
		for _, d := range dists {
			if d == workload.Hot && at == onEverySec {
				continue // reads do not care how writes are kept
			}
			for _, w := range []int{1, 2} {
				if w <= max(2, runtime.NumCPU()) {
					cells = append(cells, cell{m, s, at, d, w, b})
				}
			}
		}
	}
	return cells
}

// fasterMops is what FASTER C++ reached with its own YCSB, 8 B keys and
// values, 10M records in memory, 2 threads on 2 virtual cores of this kind.
var fasterMops = map[string][2]float64{ // uniform, zipf 0.99
	"ycsb-c":      {7.8, 9.2},
	"rmw-counter": {7.1, 8.3},
}

// faster returns FASTER's figure for the same work, NaN where there is none.
func (c cell) faster() float64 {
	ref, ok := fasterMops[c.mix.Name]
	if !ok || c.shape != (shape{workload.Binary8, 8}) || c.place != inMemory || c.workers != 2 || c.dist > workload.Zipfian {
		return math.NaN()
	}
	return ref[c.dist]
}
