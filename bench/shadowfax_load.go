package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// shadowLoad is several threads with a load each on one server.
type shadowLoad struct {
	door     door
	pid      int // of the server
	threads  int
	sessions int // of each thread
	batch    int
	mix      workload.Mix
	value    int
	dist     workload.Distribution
	records  uint64
	ids      []uint32 // which records those are; nil: those with the first numbers
}

// ring is what the load sends.
func (s *shadowLoad) ring() (*requests, error) {
	value := make([]byte, s.value)
	workload.FillValue(value, 0, 0)
	if s.door.native {
		return newBatches(s.mix, workload.Text30, value, s.batch, 1)
	}
	return newRequests(s.mix, workload.Text30, value, s.batch, 1, 0)
}

// round runs the load after a warm-up.
func (s *shadowLoad) round(ctx context.Context, traces *workload.Traces, d time.Duration) (respRound, error) {
	ring, err := s.ring()
	if err != nil {
		return respRound{}, err
	}
	var loads []*load
	defer func() {
		for _, l := range loads {
			l.close()
		}
	}()
	var nexts []func([]uint32) int
	for thread := range s.threads {
		l, err := dialDoors([]door{s.door}, s.sessions, s.batch, ring)
		if err != nil {
			return respRound{}, err
		}
		loads = append(loads, l)
		nexts = append(nexts, s.next(traces.NewChooser(s.dist, s.records, uint64(thread))))
	}
	if _, err := runAll(ctx, loads, nexts, min(warmUp, d)); err != nil {
		return respRound{}, err
	}
	return s.measured(ctx, loads, nexts, d)
}

// next draws records.
func (s *shadowLoad) next(c *workload.Chooser) func([]uint32) int {
	return func(ids []uint32) int {
		c.Fill(ids, 0)
		if s.ids != nil {
			for i, n := range ids {
				ids[i] = s.ids[n]
			}
		}
		return len(ids)
	}
}

func (s *shadowLoad) measured(ctx context.Context, loads []*load, nexts []func([]uint32) int, d time.Duration) (respRound, error) {
	before, err := exactCPUTime(s.pid)
	if err != nil {
		return respRound{}, err
	}
	total, err := runAll(ctx, loads, nexts, d)
	if err != nil {
		return respRound{}, err
	}
	after, err := exactCPUTime(s.pid)
	if err != nil {
		return respRound{}, err
	}
	if total.Nulls > 0 {
		return respRound{}, fmt.Errorf("%d of %d operations found no record", total.Nulls, total.Ops)
	}
	latency := workload.NewLatency()
	for _, l := range loads {
		latency.Merge(l.latency)
	}
	return respRound{
		OpsPerSecond: float64(total.Ops) / total.Elapsed.Seconds(), Latency: latency.Summary(),
		ServerCPU: float64(after-before) / float64(total.Ops),
	}, nil
}

// runAll runs loads at the same time, each on its thread.
func runAll(ctx context.Context, loads []*load, nexts []func([]uint32) int, d time.Duration) (sum loadTotal, err error) {
	totals, errs := make([]loadTotal, len(loads)), make([]error, len(loads))
	var all sync.WaitGroup
	for i, l := range loads {
		all.Go(func() { totals[i], errs[i] = l.run(ctx, d, nexts[i]) })
	}
	all.Wait()
	for i, t := range totals {
		if errs[i] != nil {
			return sum, errs[i]
		}
		sum.Ops, sum.Writes, sum.Nulls = sum.Ops+t.Ops, sum.Writes+t.Writes, sum.Nulls+t.Nulls
		sum.Elapsed = max(sum.Elapsed, t.Elapsed)
	}
	return sum, nil
}
