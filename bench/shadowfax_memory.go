package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ostrodb/ostro/bench/workload"
)

// memoryCell is one memory budget under one distribution.
type memoryCell struct {
	Share        float64     `json:"share_in_memory"` // of the records' bytes
	BudgetBytes  int64       `json:"budget_bytes"`    // 0: memory for all
	Distribution string      `json:"distribution"`
	Hits         float64     `json:"hits"` // operations that did not wait for a disk, of all
	Rounds       []respRound `json:"rounds"`
}

// shadowBudget is the memory limit with room for a share of the records, and for their index.
func (f shadowfaxFlags) shadowBudget(share float64) int64 {
	data := share * float64(entryBytes(workload.Text30.Len(), f.value))
	return max(leastBudget, int64((data+indexBytes)*float64(f.records)))
}

// measureMemory is throughput against the memory budget: §3.5.4.
func (x *shadow) measureMemory(ctx context.Context) error {
	for _, share := range x.f.memory {
		if err := x.memoryBudget(ctx, share); err != nil {
			return fmt.Errorf("memory for %.0f%%: %w", 100*share, err)
		}
	}
	return nil
}

func (x *shadow) memoryBudget(ctx context.Context, share float64) error {
	budget, args := int64(0), []string{"--durability", "everysec"}
	if share < 1 {
		budget = x.f.shadowBudget(share)
		args = append(args, "--memory-policy", "spill", "--memory-limit", strconv.FormatInt(budget, 10), "--segment-size", strconv.Itoa(segmentFor(budget)))
	}
	s, err := x.startLone(ctx, args...)
	if err != nil {
		return err
	}
	defer s.stop()
	for _, dist := range []workload.Distribution{workload.Zipfian, workload.Uniform} {
		c := memoryCell{Share: share, BudgetBytes: budget, Distribution: dist.String()}
		l := x.load(s, slices.Max(x.f.threads), memoryBatch)
		l.dist = dist
		before, _ := readMetrics(ctx, s.admin)
		for round := range x.f.rounds {
			x.p.begin("memory for %.0f%%, %s, round %d of %d", 100*share, dist, round+1, x.f.rounds)
			r, err := l.round(ctx, &x.traces, x.f.duration)
			if err != nil {
				return err
			}
			c.Rounds = append(c.Rounds, r)
		}
		after, err := readMetrics(ctx, s.admin)
		c.Hits = 1 - (after[metricWaited]-before[metricWaited])/(after[metricOperations]-before[metricOperations])
		if err != nil || math.IsNaN(c.Hits) {
			return fmt.Errorf("the server does not tell its metrics: %w", err)
		}
		x.out.Memory = append(x.out.Memory, c)
	}
	return nil
}

// memoryBatch is how many operations a batch has where that is not the question.
const memoryBatch = 64
