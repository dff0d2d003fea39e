package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/engine/store"
)

// measureEngine opens and loads a store for every group of cells that can
// share one, and measures each cell on it.
func measureEngine(ctx context.Context, p *progress, f engineFlags, cells []cell) (*engineOutcome, error) {
	// As in a server there are more processors than workers, so that a
	// worker never waits for background work to be preempted.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2))
	profile := &profile{path: f.cpuprofile}
	defer profile.stop()
	out := &engineOutcome{Records: uint64(f.records), RoundSeconds: f.duration.Seconds(), ClockNanos: clockCost().Nanoseconds()}
	var traces workload.Traces
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].place == cells[0].place && cells[n].shape == cells[0].shape {
			n++
		}
		if err := measureGroup(ctx, p, f, cells[:n], &traces, profile, out); err != nil {
			return nil, err
		}
		cells = cells[n:]
	}
	return out, nil
}

func measureGroup(ctx context.Context, p *progress, f engineFlags, cells []cell, traces *workload.Traces, profile *profile, out *engineOutcome) error {
	x, err := openFixture(p, f, cells[0].shape, cells[0].place)
	if err != nil {
		return err
	}
	defer x.close()
	if err := profile.start(); err != nil {
		return err
	}
	for _, c := range cells {
		p.begin("%s", c.name())
		r := engineResult{cell: c, BytesPerRecord: x.bytesPerRecord}
		for range f.rounds {
			round, err := x.measure(ctx, c, f, traces)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name(), err)
			}
			r.Rounds = append(r.Rounds, round)
		}
		out.Results = append(out.Results, r)
	}
	return nil
}

// fixture is a loaded store.
type fixture struct {
	st             *store.Store
	records        uint64 // ids below it are there
	shape          shape
	dir            string
	bytesPerRecord float64 // of resident memory, right after the load
}

func openFixture(p *progress, f engineFlags, s shape, at place) (*fixture, error) {
	x := &fixture{records: uint64(f.records), shape: s}
	o := store.Options{Durability: store.None}
	if at != inMemory {
		dir, err := makeDir(f.dir)
		if err != nil {
			return nil, fmt.Errorf("make a data directory: %w", err)
		}
		x.dir, o.Dir = dir, dir
	}
	switch at {
	case onEverySec:
		o.Durability = store.EverySec
	case onBudget:
		o.MemoryBytes, o.Policy = budgetBytes(f.budget, x.records, s), store.Spill
		o.SegmentBytes = segmentFor(o.MemoryBytes)
	}
	before, err := residentOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	if x.st, err = store.Open(o); err != nil {
		os.RemoveAll(x.dir)
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if err := x.load(p); err != nil {
		x.close()
		return nil, fmt.Errorf("load: %w", err)
	}
	after, err := residentOf(os.Getpid())
	x.bytesPerRecord = float64(after.Total-before.Total) / float64(x.records)
	return x, err
}

// entryBytes is what a record takes in the log: header, key, value, padding.
func entryBytes(key, value int) int64 { return int64(24+key+value+7) &^ 7 }

func budgetBytes(share float64, records uint64, s shape) int64 {
	data := float64(entryBytes(s.keys.Len(), s.value)) * float64(records)
	return max(leastBudget, int64(share*data))
}

const (
	// leastBudget leaves room for some of the smallest segments.
	leastBudget  = 16 * leastSegment
	leastSegment = 256 << 10
	mostSegment  = 8 << 20 // the default
)

// segmentFor is a segment size of which the budget holds at least 16, for the
// sake of runs with few records.
func segmentFor(budget int64) int {
	size := mostSegment
	for size > leastSegment && int64(16*size) > budget {
		size /= 2
	}
	return size
}

func (x *fixture) close() {
	_ = x.st.Close() // what was measured is measured
	if x.dir != "" {
		os.RemoveAll(x.dir)
	}
}

// load puts every record, with as many workers as there are cores.
func (x *fixture) load(p *progress) error {
	workers := uint64(runtime.NumCPU())
	p.begin("load %s records of %s", grouped(int64(x.records)), x.shape)
	var done atomic.Uint64
	errs := make(chan error, workers)
	for w := range workers {
		go func() {
			errs <- x.loadRange(w*x.records/workers, (w+1)*x.records/workers, &done)
		}()
	}
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	var first error
	for left := workers; left > 0; {
		select {
		case err := <-errs:
			if left--; first == nil {
				first = err
			}
		case <-tick.C:
			p.set(done.Load(), x.records)
		}
	}
	return first
}

func (x *fixture) loadRange(from, to uint64, done *atomic.Uint64) error {
	w, err := newWorker(x, workload.Writes, 1)
	if err != nil {
		return err
	}
	defer w.ss.Close()
	for from < to {
		n := min(to-from, roundOps)
		for i := range n {
			w.ids[i] = uint32(from + i)
		}
		if err := w.round(w.ids[:n], w.loadDeck[:n], -1); err != nil {
			return err
		}
		from += n
		done.Add(n)
	}
	return nil
}

// engineRound is one round of one cell.
type engineRound struct {
	Mops        float64          `json:"mops"`
	Latency     workload.Summary `json:"latency"`
	CPUPerOp    float64          `json:"cpu_ns_per_op"` // of the whole process; steadier than Mops where others use the cores
	AllocsPerOp float64          `json:"allocs_per_op"`
	Collections uint32           `json:"collections"`
	LongestGC   time.Duration    `json:"longest_gc_pause_ns"`
	ColdShare   float64          `json:"cold_share"` // of operations that waited for the disk
}

// measure runs one round of c on the fixture.
func (x *fixture) measure(ctx context.Context, c cell, f engineFlags, traces *workload.Traces) (engineRound, error) {
	workers := make([]*worker, c.workers)
	for i := range workers {
		w, err := newWorker(x, c.mix, c.batch)
		if err != nil {
			return engineRound{}, err
		}
		defer w.ss.Close()
		w.ctx, w.index, w.workers, w.pin = ctx, uint64(i), uint64(c.workers), f.pin
		w.chooser = traces.NewChooser(c.dist, x.records, uint64(i))
		workers[i] = w
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu, start := ownCPU(), time.Now()
	for _, w := range workers {
		wg.Go(func() { w.run(&stop) })
	}
	collectAtIntervals(ctx, f.duration)
	stop.Store(true)
	wg.Wait()
	elapsed := time.Since(start)
	cpu = ownCPU() - cpu
	runtime.ReadMemStats(&after)
	if err := ctx.Err(); err != nil {
		return engineRound{}, err
	}
	return x.sum(workers, elapsed, cpu, &before, &after)
}

// collectAtIntervals waits for d and collects garbage three times in between:
// a run that allocates nothing would otherwise never show a pause.
func collectAtIntervals(ctx context.Context, d time.Duration) {
	tick := time.NewTicker(max(1, d/4))
	defer tick.Stop()
	for i := range 4 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if i < 3 {
			runtime.GC()
		}
	}
}

func (x *fixture) sum(workers []*worker, elapsed, cpu time.Duration, before, after *runtime.MemStats) (engineRound, error) {
	var ops, cold, missing uint64
	inserted := workers[0].inserted
	latency := workload.NewLatency()
	for _, w := range workers {
		if w.err != nil {
			return engineRound{}, w.err
		}
		ops, cold, missing = ops+w.ops, cold+w.cold, missing+w.missing
		inserted = min(inserted, w.inserted)
		latency.Merge(w.latency)
	}
	if missing > 0 {
		return engineRound{}, fmt.Errorf("%d of %d reads found no record", missing, ops)
	}
	x.records += inserted * uint64(len(workers))
	r := engineRound{
		Mops:        float64(ops) / elapsed.Seconds() / 1e6,
		Latency:     latency.Summary(),
		CPUPerOp:    float64(cpu) / float64(ops),
		AllocsPerOp: float64(after.Mallocs-before.Mallocs) / float64(ops),
		Collections: after.NumGC - before.NumGC,
		ColdShare:   float64(cold) / float64(ops),
	}
	for n := before.NumGC; n < after.NumGC; n++ {
		pause := after.PauseNs[n%uint32(len(after.PauseNs))]
		r.LongestGC = max(r.LongestGC, time.Duration(pause))
	}
	return r, nil
}

// clockCost is what reading the clock twice adds to a sampled latency.
func clockCost() time.Duration {
	const n = 10_000
	start := time.Now()
	for range n {
		_ = time.Since(start)
	}
	return time.Since(start) / n
}

// profile is a CPU profile that starts behind the first load.
type profile struct {
	path string
	file *os.File
}

func (p *profile) start() (err error) {
	if p.path == "" || p.file != nil {
		return nil
	}
	if p.file, err = os.Create(p.path); err == nil {
		err = pprof.StartCPUProfile(p.file)
	}
	if err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}

func (p *profile) stop() {
	if p.file != nil {
		pprof.StopCPUProfile()
		p.file.Close()
	}
}
