package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/ostrodb/ostro/bench/plot"
	"github.com/ostrodb/ostro/bench/workload"
)

// tailwindOutcome is what `ostro bench tailwind` found.
type tailwindOutcome struct {
	Nodes      int            `json:"nodes"`
	Records    uint64         `json:"records_per_primary"`
	ValueBytes int            `json:"value_bytes"`
	Modes      []string       `json:"modes"` // ratios are to the last
	Cells      []tailwindCell `json:"cells"` // per case all modes, in their order
	Paced      []tailwindCell `json:"paced"` // the same at fixed rates
	Verdicts   []verdict      `json:"verdicts,omitempty"`
}

// tailwindCell is all rounds of one case in one mode.
type tailwindCell struct {
	tailwindCase
	Mode   string          `json:"mode"`
	Rounds []tailwindRound `json:"rounds"`
}

type tailwindRound struct {
	OpsPerSecond float64          `json:"ops_per_second_per_primary"`
	Put          workload.Summary `json:"put"`
	Late         int              `json:"late"`      // operations that were due and not sent when the time was over
	Stolen       time.Duration    `json:"stolen_ns"` // by the host, from all cores
	Tries        int              `json:"tries"`     // of which this one was the calmest
	PrimaryCPU   float64          `json:"primary_cpu_ns_per_op"`
	BackupCPU    float64          `json:"backup_cpu_ns_per_write"` // of all nodes that are no primary, together
	NICCPU       float64          `json:"nic_cpu_ns_per_write"`
}

func (c tailwindCell) of(figure func(tailwindRound) float64) float64 {
	return medianOf(c.Rounds, figure)
}

// cost is the mean of a figure of processor time: what is done when a segment is full falls into one short round or
// another, and no round has the usual part of it.
func (c tailwindCell) cost(figure func(tailwindRound) float64) (sum float64) {
	for _, r := range c.Rounds {
		sum += figure(r)
	}
	return sum / float64(len(c.Rounds))
}

func tailwindRate(r tailwindRound) float64    { return r.OpsPerSecond }
func tailwindP50(r tailwindRound) float64     { return float64(r.Put.P50) }
func tailwindP99(r tailwindRound) float64     { return float64(r.Put.P99) }
func tailwindPrimary(r tailwindRound) float64 { return r.PrimaryCPU }
func tailwindBackup(r tailwindRound) float64  { return r.BackupCPU }
func tailwindNIC(r tailwindRound) float64     { return r.NICCPU }

// baseline is the same case in the last mode.
func (o *tailwindOutcome) baseline(cells []tailwindCell, i int) tailwindCell {
	n := len(o.Modes)
	return cells[i-i%n+n-1]
}

func (o *tailwindOutcome) tables() []table {
	t := table{
		title: fmt.Sprintf("%d nodes, three copies, %s records of 30 B keys and %d B values a primary, zipf 0.99, medians of %d rounds",
			o.Nodes, grouped(int64(o.Records)), o.ValueBytes, len(o.Cells[0].Rounds)),
		names: 4,
		head: []string{
			"writes", "primaries", "clients", "mode", "ops/s a primary", "ratio", "PUT p50", "gain", "PUT p99", "gain",
			"primary CPU/op", "backups CPU/write", "ratio", "NIC CPU/write",
		},
	}
	for i, c := range o.Cells {
		base := o.baseline(o.Cells, i)
		backup, share := "-", "-"
		if c.Primaries < o.Nodes {
			backup = decimals(c.cost(tailwindBackup)/1e3, 2) + " µs"
			share = times(c.cost(tailwindBackup) / base.cost(tailwindBackup))
		}
		t.add(fmt.Sprintf("%d%%", c.Writes), fmt.Sprint(c.Primaries), fmt.Sprint(c.Clients), c.Mode,
			rate(c.of(tailwindRate)), times(c.of(tailwindRate)/base.of(tailwindRate)),
			short(time.Duration(c.of(tailwindP50))), times(base.of(tailwindP50)/c.of(tailwindP50)),
			short(time.Duration(c.of(tailwindP99))), times(base.of(tailwindP99)/c.of(tailwindP99)),
			decimals(c.cost(tailwindPrimary)/1e3, 2)+" µs", backup, share, o.nic(c))
	}
	all := []table{t}
	if len(o.Paced) > 0 {
		all = append(all, o.paced())
	}
	if len(o.Verdicts) > 0 {
		all = append(all, verdictsTable(o.Verdicts))
	}
	return all
}

// paced shows latencies against the load.
func (o *tailwindOutcome) paced() table {
	t := table{
		title: "Operations that arrive at fixed rates: latency of a write from the moment it was due",
		names: 3,
		head:  []string{"writes", "primaries", "mode", "offered/s", "PUT p50", "gain", "PUT p99", "gain", "late", "primary CPU/op", "backups CPU/write", "ratio"},
	}
	for i, c := range o.Paced {
		base := o.baseline(o.Paced, i)
		backup, share := "-", "-"
		if c.Primaries < o.Nodes {
			backup = decimals(c.cost(tailwindBackup)/1e3, 2) + " µs"
			share = times(c.cost(tailwindBackup) / base.cost(tailwindBackup))
		}
		t.add(fmt.Sprintf("%d%%", c.Writes), fmt.Sprint(c.Primaries), c.Mode, rate(c.Offered),
			short(time.Duration(c.of(tailwindP50))), times(base.of(tailwindP50)/c.of(tailwindP50)),
			short(time.Duration(c.of(tailwindP99))), times(base.of(tailwindP99)/c.of(tailwindP99)),
			grouped(int64(c.of(func(r tailwindRound) float64 { return float64(r.Late) }))),
			decimals(c.cost(tailwindPrimary)/1e3, 2)+" µs", backup, share)
	}
	return t
}

func (o *tailwindOutcome) nic(c tailwindCell) string {
	if v := c.cost(tailwindNIC); v > 0 {
		return decimals(v/1e3, 2) + " µs"
	}
	return decimals(math.NaN(), 0)
}

func (o *tailwindOutcome) notes() []string {
	notes := []string{
		"ratios and gains are to " + o.Modes[len(o.Modes)-1] + " in the same case; rounds alternate between the modes",
		"the paper, 50% writes: throughput 1.7x, PUT median 2x and 99th percentile 3x lower, backups' processor time a fourth at best",
		"backups' CPU is that of all nodes that serve no load, whatever else they do (leases, metadata); that of a NIC process stands beside it",
		"clients, nodes and NIC share the machine's cores; processor times are means of the rounds",
	}
	if len(o.Paced) > 0 {
		notes = append(notes, o.calm())
	}
	return notes
}

// calm tells what the host of the machine did to the rounds at fixed rates.
func (o *tailwindOutcome) calm() string {
	var rounds, again, held int
	for _, c := range o.Paced {
		rounds += len(c.Rounds)
		for _, r := range c.Rounds {
			again += r.Tries - 1
			if r.Stolen > 0 {
				held++
			}
		}
	}
	return fmt.Sprintf("of %d rounds at fixed rates the host held up %d of those that count; %d more were run again for it", rounds, held, again)
}

func (o *tailwindOutcome) chart(where string) []byte {
	all := plot.Column{o.bars(o.Cells, tailwindRate, plot.Bars{
		Title: "Replication by one-sided writes and by calls, three copies", Subtitle: where, Unit: "operations per second and primary",
	})}
	if len(o.Paced) > 0 {
		all = append(all,
			o.bars(o.Paced, micros(tailwindP50), plot.Bars{Title: "Median of a PUT at the same load", Subtitle: where, Unit: "µs from the moment it was due", Log: true}),
			o.bars(o.Paced, micros(tailwindP99), plot.Bars{Title: "99th percentile of a PUT at the same load", Subtitle: where, Unit: "µs from the moment it was due", Log: true}))
	}
	return all.SVG()
}

// bars has a row for every case, and in it a bar for every mode.
func (o *tailwindOutcome) bars(cells []tailwindCell, of func(tailwindRound) float64, c plot.Bars) plot.Bars {
	for _, m := range o.Modes {
		c.Series = append(c.Series, plot.Series{Name: m})
	}
	for i, cell := range cells {
		at := i % len(o.Modes)
		if at == 0 {
			c.Rows = append(c.Rows, cell.String())
		}
		c.Series[at].Values = append(c.Series[at].Values, cell.of(of))
	}
	return c
}

// micros turns nanoseconds into what is read more easily.
func micros(of func(tailwindRound) float64) func(tailwindRound) float64 {
	return func(r tailwindRound) float64 { return of(r) / 1e3 }
}
