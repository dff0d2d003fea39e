package bench

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ostrodb/ostro/bench/plot"
	"github.com/ostrodb/ostro/bench/workload"
)

// respOutcome is what `ostro bench resp` found.
type respOutcome struct {
	Targets      []*target    `json:"targets"`
	Driver       string       `json:"driver"`
	Clients      int          `json:"clients"`
	Records      uint64       `json:"records"`
	KeyBytes     int          `json:"key_bytes"`
	ValueBytes   int          `json:"value_bytes"`
	RoundSeconds float64      `json:"round_seconds"`
	Cluster      bool         `json:"cluster"` // every write is kept three times before it is answered
	Results      []respResult `json:"cases"`   // per case all targets, in their order
}

// respResult is all rounds of one case on one server.
type respResult struct {
	respCase
	Target string      `json:"target"`
	Rounds []respRound `json:"rounds"`
}

func (r respResult) rate() float64 {
	return medianOf(r.Rounds, func(e respRound) float64 { return e.OpsPerSecond })
}

func (r respResult) cpu() float64 {
	if v := medianOf(r.Rounds, func(e respRound) float64 { return e.ServerCPU }); v > 0 {
		return v
	}
	return math.NaN()
}

func (r respResult) latency(of func(workload.Summary) time.Duration) string {
	return short(time.Duration(medianOf(r.Rounds, func(e respRound) float64 { return float64(of(e.Latency)) })))
}

// baseline is the same case on the first server.
func (o *respOutcome) baseline(i int) respResult {
	return o.Results[i-i%len(o.Targets)]
}

func (o *respOutcome) tables() []table {
	t := table{
		title: fmt.Sprintf("%d clients, %s records of %d B keys and %d B values, medians of %d rounds",
			o.Clients, grouped(int64(o.Records)), o.KeyBytes, o.ValueBytes, len(o.Results[0].Rounds)),
		names: 4,
		head: []string{
			"workload", "keys", "pipeline", "server", "ops/s", "±", "ratio", "p50", "p99", "p99.9",
			"server CPU/op", "ratio", "client busy",
		},
	}
	if o.Cluster {
		t.head = append(t.head, "backups CPU/op")
	}
	for i, r := range o.Results {
		base := o.baseline(i)
		cells := []string{
			r.Workload, r.Distribution, fmt.Sprint(r.Pipeline), r.Target,
			rate(r.rate()),
			fmt.Sprintf("%.0f%%", 50*spread(figures(r.Rounds, func(e respRound) float64 { return e.OpsPerSecond }))),
			times(r.rate() / base.rate()),
			r.latency(func(s workload.Summary) time.Duration { return s.P50 }),
			r.latency(func(s workload.Summary) time.Duration { return s.P99 }),
			r.latency(func(s workload.Summary) time.Duration { return s.P999 }),
			decimals(r.cpu()/1e3, 2) + " µs",
			times(r.cpu() / base.cpu()),
			decimals(100*medianOf(r.Rounds, func(e respRound) float64 { return e.ClientBusy }), 0) + "%",
		}
		if o.Cluster {
			cells = append(cells, decimals(medianOf(r.Rounds, func(e respRound) float64 { return e.BackupCPU })/1e3, 2)+" µs")
		}
		t.add(cells...)
	}
	return []table{t}
}

func (o *respOutcome) notes() []string {
	var who []string
	for _, t := range o.Targets {
		who = append(who, fmt.Sprintf("%s is %s", t.Name, t.Version))
	}
	notes := []string{
		strings.Join(who, "; "),
		"ratios are to " + o.Targets[0].Name + "; rounds alternate between the servers",
		"a pipeline is timed as a whole: all its requests count with the time until its last reply",
		"server CPU is user and system time of the server's process; a client near 100% busy bounds what can be seen",
	}
	if o.Cluster {
		notes = append(notes, "every write is answered when it is in three processes: with Redis a pair of SET and WAIT 2 0 counts as one operation; backups' CPU is that of all other processes that replication takes, a NIC's with them")
	}
	return notes
}

func (o *respOutcome) chart(where string) []byte {
	c := plot.Bars{
		Title:    fmt.Sprintf("RESP servers, %d clients, %d B values", o.Clients, o.ValueBytes),
		Subtitle: where, Unit: "operations per second",
	}
	for _, t := range o.Targets {
		c.Series = append(c.Series, plot.Series{Name: t.Name})
	}
	for i, r := range o.Results {
		at := i % len(o.Targets)
		if at == 0 {
			c.Rows = append(c.Rows, r.String())
		}
		c.Series[at].Values = append(c.Series[at].Values, r.rate())
	}
	return c.SVG()
}
