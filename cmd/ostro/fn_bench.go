package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

type fnBench struct {
	fnLocal
	workers int
	length  time.Duration
	json    bool
}

func newFnBench() *cobra.Command {
	f := &fnBench{}
	cmd := &cobra.Command{
		Use:   "bench MODULE",
		Short: "Measure a function: calls per second, latency, fuel",
		Long: `Call a function again and again for a while, on the data of a file kept in memory, and
tell how many calls there were, how long they took, and what fuel and host calls
each used. Its writes are applied. Figures are of the function and its host, without
network, store and replication.`,
		Example: `  ostro fn bench tree.wasm --fn walk --key root --data tree.jsonl
  ostro fn bench count.wasm --fn incr --key n --workers 4 --for 10s --json`,
		Args: takes(1, 1, "one module"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.workers < 1 || f.length <= 0 {
				return usagef("--workers must be at least 1 and --for above 0")
			}
			if err := f.open(cmd, args[0]); err != nil {
				return err
			}
			defer f.close()
			return f.run(cmd)
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&f.workers, "workers", 1, "calls at the same time")
	cmd.Flags().DurationVar(&f.length, "for", 2*time.Second, "how long to measure")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// fnMeasured is what `ostro fn bench` prints.
type fnMeasured struct {
	Function   string  `json:"function"`
	Calls      int64   `json:"calls"`
	Conflicts  int64   `json:"conflicts"` // called again
	PerSecond  float64 `json:"per_second"`
	P50Nanos   int64   `json:"p50_ns"`
	P99Nanos   int64   `json:"p99_ns"`
	P999Nanos  int64   `json:"p999_ns"`
	Fuel       float64 `json:"fuel_per_call"`
	HostCalls  float64 `json:"host_calls_per_call"`
	Response   int     `json:"response_bytes"`
	CompileMs  float64 `json:"compile_ms"`
	InstanceUs float64 `json:"instance_us"`
}

func (f *fnBench) run(cmd *cobra.Command) error {
	inv, err := f.invocation()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := f.pool.Warm(f.workers); err != nil {
		return err
	}
	m := fnMeasured{Function: inv.Function, CompileMs: ms(f.compiling), InstanceUs: ms(time.Since(start)) * 1000 / float64(f.workers)}
	if err := f.measure(inv, &m); err != nil {
		return err
	}
	if f.json {
		return printJSON(cmd, m)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s: %.0f calls/s, p50 %v, p99 %v, p99.9 %v\n", m.Function, m.PerSecond, time.Duration(m.P50Nanos), time.Duration(m.P99Nanos), time.Duration(m.P999Nanos))
	fmt.Fprintf(out, "each: %.0f units of fuel, %.1f host calls, a response of %d bytes\n", m.Fuel, m.HostCalls, m.Response)
	fmt.Fprintf(out, "before: %.1f ms to compile, %.0f µs an instance\n", m.CompileMs, m.InstanceUs)
	if m.Conflicts > 0 {
		fmt.Fprintf(out, "%d calls had to be repeated, for another had changed what they read\n", m.Conflicts)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// fnWorker is one of the callers.
type fnWorker struct {
	latency   *workload.Latency
	calls     int64
	conflicts int64
	last      extension.Result
	err       error
}

func (f *fnBench) measure(inv *extension.Invocation, m *fnMeasured) error {
	workers := make([]fnWorker, f.workers)
	before := f.pool.Metrics()
	start := time.Now()
	var all sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.latency = workload.NewLatency()
		all.Go(func() { w.run(f.pool, *inv, start.Add(f.length)) })
	}
	all.Wait()
	took := time.Since(start)
	sum := workload.NewLatency()
	for i := range workers {
		if err := workers[i].err; err != nil {
			return err
		}
		sum.Merge(workers[i].latency)
		m.Calls += workers[i].calls
		m.Conflicts += workers[i].conflicts
		m.Response = len(workers[i].last.Response)
	}
	after := f.pool.Metrics()
	tries := float64(after.Calls - before.Calls)
	m.PerSecond = float64(m.Calls) / took.Seconds()
	m.Fuel = float64(after.Fuel-before.Fuel) / tries
	m.HostCalls = float64(after.HostCalls-before.HostCalls) / tries
	q := sum.Summary()
	m.P50Nanos, m.P99Nanos, m.P999Nanos = q.P50.Nanoseconds(), q.P99.Nanoseconds(), q.P999.Nanoseconds()
	return nil
}

func (w *fnWorker) run(p *extension.Pool, inv extension.Invocation, until time.Time) {
	at := time.Now()
	for at.Before(until) {
		inv.Into = w.last.Response[:0]
		res, err := p.Call(&inv)
		switch {
		case errors.Is(err, local.ErrConflict):
			w.conflicts++
			continue
		case err != nil:
			w.err = err
			return
		}
		w.last = res
		w.calls++
		now := time.Now()
		w.latency.Record(now.Sub(at).Nanoseconds(), 1)
		at = now
	}
}
