package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ostrodb/ostro/bench/plot"
	"github.com/ostrodb/ostro/bench/workload"
)

// engineOutcome is what `ostro bench engine` found.
type engineOutcome struct {
	Records      uint64         `json:"records"`
	RoundSeconds float64        `json:"round_seconds"`
	ClockNanos   int64          `json:"clock_ns"`
	Results      []engineResult `json:"cells"`
}

// engineResult is all rounds of one cell.
type engineResult struct {
	cell           cell
	BytesPerRecord float64
	Rounds         []engineRound
}

// MarshalJSON adds what is computed from the rounds.
func (r engineResult) MarshalJSON() ([]byte, error) {
	type figures struct {
		Name           string        `json:"name"`
		Workload       string        `json:"workload"`
		KeyBytes       int           `json:"key_bytes"`
		ValueBytes     int           `json:"value_bytes"`
		Place          string        `json:"place"`
		Distribution   string        `json:"distribution"`
		Workers        int           `json:"workers"`
		Batch          int           `json:"batch"`
		Mops           float64       `json:"mops"`
		Faster         *float64      `json:"faster_mops,omitempty"`
		BytesPerRecord float64       `json:"bytes_per_record"`
		Rounds         []engineRound `json:"rounds"`
	}
	c := r.cell
	out := figures{
		c.name(), c.mix.Name, c.shape.keys.Len(), c.shape.value, string(c.place), c.dist.String(),
		c.workers, c.batch, r.mops(), nil, r.BytesPerRecord, r.Rounds,
	}
	if ref := c.faster(); !math.IsNaN(ref) {
		out.Faster = &ref
	}
	return json.Marshal(out)
}

func (r engineResult) mops() float64 {
	return medianOf(r.Rounds, func(e engineRound) float64 { return e.Mops })
}

func (r engineResult) latency(of func(workload.Summary) time.Duration) string {
	d := medianOf(r.Rounds, func(e engineRound) float64 { return float64(of(e.Latency)) })
	return short(time.Duration(d))
}

func (o *engineOutcome) tables() []table {
	var all []table
	for i, r := range o.Results {
		if i == 0 || r.cell.place != o.Results[i-1].cell.place || r.cell.shape != o.Results[i-1].cell.shape {
			all = append(all, o.newTable(r))
		}
		all[len(all)-1].add(r.row()...)
	}
	return all
}

func (o *engineOutcome) newTable(r engineResult) table {
	return table{
		title: fmt.Sprintf("%s: %s records, %d B keys, %d B values; %.0f B of memory a record",
			placeNames[r.cell.place], grouped(int64(o.Records)), r.cell.shape.keys.Len(), r.cell.shape.value, r.BytesPerRecord),
		names: 4,
		head: []string{
			"workload", "keys", "workers", "batch", "Mops/s", "±", "p50", "p99", "p99.9",
			"CPU/op", "allocs/op", "longest GC", "cold", "FASTER", "ratio",
		},
	}
}

var placeNames = map[place]string{
	inMemory:   "In memory, durability none",
	onEverySec: "Log on disk, durability everysec",
	onBudget:   "Memory budget below the data, the rest on disk",
}

func (r engineResult) row() []string {
	c, faster := r.cell, r.cell.faster()
	batch := "-"
	if c.batch > 1 {
		batch = fmt.Sprint(c.batch)
	}
	return []string{
		c.mix.Name, c.dist.String(), fmt.Sprint(c.workers), batch,
		decimals(r.mops(), 2),
		fmt.Sprintf("%.0f%%", 50*spread(figures(r.Rounds, func(e engineRound) float64 { return e.Mops }))),
		r.latency(func(s workload.Summary) time.Duration { return s.P50 }),
		r.latency(func(s workload.Summary) time.Duration { return s.P99 }),
		r.latency(func(s workload.Summary) time.Duration { return s.P999 }),
		short(time.Duration(medianOf(r.Rounds, func(e engineRound) float64 { return e.CPUPerOp }))),
		decimals(medianOf(r.Rounds, func(e engineRound) float64 { return e.AllocsPerOp }), 4),
		short(time.Duration(medianOf(r.Rounds, func(e engineRound) float64 { return float64(e.LongestGC) }))),
		fmt.Sprintf("%.1f%%", 100*medianOf(r.Rounds, func(e engineRound) float64 { return e.ColdShare })),
		decimals(faster, 1),
		times(r.mops() / faster),
	}
}

func (o *engineOutcome) notes() []string {
	return []string{
		fmt.Sprintf("%d operations share one epoch protection; one of them is timed, which adds about %d ns; a batch is timed as a whole", roundOps, 2*o.ClockNanos),
		"a read copies the value into the caller's memory; records drawn by zipf come from a trace made before",
		"FASTER: its own YCSB in C++ on such a machine, 8 B keys and values, 10M records, 2 threads; taken once, not in this run",
		"garbage is collected three times in each round, so that there are pauses to see",
	}
}

func (o *engineOutcome) chart(where string) []byte {
	mops := plot.Series{Name: "Ostro"}
	faster := plot.Series{Name: "FASTER C++ (reference)"}
	c := plot.Bars{
		Title:    "Engine: " + grouped(int64(o.Records)) + " records",
		Subtitle: where, Unit: "million operations per second",
	}
	compared := false
	for _, r := range o.Results {
		c.Rows = append(c.Rows, r.cell.name())
		mops.Values = append(mops.Values, r.mops())
		faster.Values = append(faster.Values, r.cell.faster())
		compared = compared || !math.IsNaN(r.cell.faster())
	}
	c.Series = []plot.Series{mops}
	if compared {
		c.Series = append(c.Series, faster)
	}
	return c.SVG()
}
