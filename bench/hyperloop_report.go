package bench

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ostrodb/ostro/bench/plot"
	"github.com/ostrodb/ostro/bench/workload"
)

// hyperOutcome is what `ostro bench hyperloop` found.
type hyperOutcome struct {
	Fabric         string      `json:"fabric"`
	Modes          []string    `json:"modes"`
	BusyProcesses  int         `json:"busy_processes"`
	Window         int         `json:"window"`
	Slots          int         `json:"slots"`
	NICsRealTime   bool        `json:"nics_real_time"`
	ClientRealTime bool        `json:"client_real_time"`
	Cells          []hyperCell `json:"cells"` // per case all modes, in their order
}

// hyperCell is all rounds of one case in one mode.
type hyperCell struct {
	hyperCase
	Mode         string           `json:"mode"`
	Operations   uint64           `json:"operations"`
	OpsPerSecond float64          `json:"ops_per_second"`
	Latency      workload.Summary `json:"latency"`               // of all rounds together
	ReplicaCPU   float64          `json:"replica_cpu_ns_per_op"` // of all replicas' programs together
	NICCPU       float64          `json:"nic_cpu_ns_per_op"`     // of all NIC processes together
	ReplicaCores float64          `json:"replica_cores"`         // busy, of all replicas together
	NICCores     float64          `json:"nic_cores"`
	Rounds       []hyperRound     `json:"rounds"`

	all *workload.Latency
}

// sum fills in what the rounds come to.
func (c *hyperCell) sum() {
	var seconds float64
	var replicas, nics time.Duration
	for _, r := range c.Rounds {
		c.Operations += r.Operations
		seconds += r.Seconds
		replicas += r.ReplicaCPU
		nics += r.NICCPU
	}
	n := float64(max(1, c.Operations))
	c.Latency = c.all.Summary()
	c.OpsPerSecond = medianOf(c.Rounds, func(r hyperRound) float64 { return float64(r.Operations) / r.Seconds })
	c.ReplicaCPU, c.NICCPU = float64(replicas)/n, float64(nics)/n
	c.ReplicaCores, c.NICCores = replicas.Seconds()/seconds, nics.Seconds()/seconds
}

// first is the same case in the first mode.
func (o *hyperOutcome) first(i int) hyperCell { return o.Cells[i-i%len(o.Modes)] }

// pick returns the cells that are wanted, with their places.
func (o *hyperOutcome) pick(want func(hyperCell) bool) []int {
	var at []int
	for i, c := range o.Cells {
		if want(c) {
			at = append(at, i)
		}
	}
	return at
}

func (o *hyperOutcome) tables() []table {
	var all []table
	for _, load := range []string{idle, contended} {
		for _, t := range []table{o.latencyTable(load), o.sizesTable(load), o.throughputTable(load)} {
			if len(t.rows) > 0 {
				all = append(all, t)
			}
		}
	}
	return all
}

func (o *hyperOutcome) company(load string) string {
	if load == contended {
		return fmt.Sprintf("beside %d busy processes", o.BusyProcesses)
	}
	return "nothing else running"
}

// smallest is the group size that all primitives were measured on.
func (o *hyperOutcome) smallest() int { return o.Cells[0].Replicas }

func (o *hyperOutcome) latencyTable(load string) table {
	t := table{
		title: fmt.Sprintf("One operation at a time, group of %d over %s, %s", o.smallest(), o.Fabric, o.company(load)),
		names: 3,
		head: []string{
			"primitive", "bytes", "mode", "operations", "average", "p50", "p95", "p99", "p99.9",
			"average to chain's", "p99 to chain's", "paper's", "replicas' CPU/op", "chain's share", "NIC CPU/op",
		},
	}
	for _, i := range o.pick(func(c hyperCell) bool {
		return c.Load == load && c.Replicas == o.smallest() && c.Primitive != throughput
	}) {
		c, base := o.Cells[i], o.first(i)
		t.add(c.Primitive, fmt.Sprint(c.Bytes), c.Mode, grouped(int64(c.Operations)),
			short(c.Latency.Mean), short(c.Latency.P50), short(c.Latency.P95), short(c.Latency.P99), short(c.Latency.P999),
			manyTimes(float64(c.Latency.Mean)/float64(base.Latency.Mean)),
			manyTimes(float64(c.Latency.P99)/float64(base.Latency.P99)),
			paperRatio(c),
			cpuShort(c.ReplicaCPU), share(base.ReplicaCPU/c.ReplicaCPU), cpuShort(c.NICCPU))
	}
	return t
}

// manyTimes writes a ratio that may be of hundreds.
func manyTimes(v float64) string {
	if v < 100 {
		return times(v)
	}
	return grouped(int64(math.Round(v))) + "x"
}

// cpuShort writes processor time; unlike a latency, it may be nothing at all.
func cpuShort(ns float64) string {
	if ns < 1 {
		return "0"
	}
	return short(time.Duration(ns))
}

// share writes a ratio as a percentage.
func share(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

// paperRatio is how many times lower HyperLoop's p99 was: figure 8 says it for
// the best of all sizes, table 2 for gCAS.
func paperRatio(c hyperCell) string {
	if c.Load != contended || c.Mode != "naive-events" && c.Mode != "naive-polling" {
		return "-"
	}
	if ratio := (map[string]string{gWrite: "up to 802x", gCopy: "up to 848x", gCAS: "849x"})[c.Primitive]; ratio != "" {
		return ratio
	}
	return "-"
}

// sizesTable is p99 by group size, as figure 10.
func (o *hyperOutcome) sizesTable(load string) table {
	var sizes []int
	for _, c := range o.Cells {
		if c.Primitive == gWrite && !slices.Contains(sizes, c.Replicas) {
			sizes = append(sizes, c.Replicas)
		}
	}
	t := table{
		title: fmt.Sprintf("p99 of gWRITE by group size over %s, %s", o.Fabric, o.company(load)),
		names: 2, head: []string{"bytes", "mode"},
	}
	if len(sizes) < 2 {
		return t
	}
	for _, n := range sizes {
		t.head = append(t.head, fmt.Sprintf("%d replicas", n))
	}
	t.head = append(t.head, "last to first", "paper's")
	for _, i := range o.pick(func(c hyperCell) bool {
		return c.Load == load && c.Primitive == gWrite && c.Replicas == sizes[0]
	}) {
		c := o.Cells[i]
		row, last := []string{fmt.Sprint(c.Bytes), c.Mode}, math.NaN()
		for _, n := range sizes {
			p99 := time.Duration(0)
			for _, at := range o.pick(func(d hyperCell) bool {
				return d.Load == load && d.Primitive == gWrite && d.Replicas == n && d.Bytes == c.Bytes && d.Mode == c.Mode
			}) {
				p99 = o.Cells[at].Latency.P99
			}
			row, last = append(row, short(p99)), float64(p99)
		}
		t.add(append(row, times(last/float64(c.Latency.P99)), paperGrowth(c))...)
	}
	return t
}

// paperGrowth is what figure 10 says of p99 from 3 replicas to 7.
func paperGrowth(c hyperCell) string {
	switch c.Mode {
	case "chain":
		return "no significant"
	case "naive-events", "naive-polling":
		return "up to 2.97x"
	}
	return "-"
}

func (o *hyperOutcome) throughputTable(load string) table {
	t := table{
		title: fmt.Sprintf("gWRITE, %d in flight, group of %d over %s, %s", o.Window, o.smallest(), o.Fabric, o.company(load)),
		names: 2,
		head: []string{
			"bytes", "mode", "ops/s", "±", "MB/s", "ratio", "paper's", "replicas' cores busy", "paper's", "replicas' CPU/op", "chain's share", "NIC cores busy",
		},
	}
	for _, i := range o.pick(func(c hyperCell) bool { return c.Load == load && c.Primitive == throughput }) {
		c, base := o.Cells[i], o.first(i)
		cores := "1 or more"
		if c.Mode == "chain" {
			cores = "almost 0"
		}
		t.add(fmt.Sprint(c.Bytes), c.Mode, rate(c.OpsPerSecond),
			fmt.Sprintf("%.0f%%", 50*spread(figures(c.Rounds, func(r hyperRound) float64 { return float64(r.Operations) / r.Seconds }))),
			rate(c.OpsPerSecond*float64(c.Bytes)/1e6), times(c.OpsPerSecond/base.OpsPerSecond), "similar",
			decimals(c.ReplicaCores, 3), cores,
			cpuShort(c.ReplicaCPU), share(base.ReplicaCPU/c.ReplicaCPU), decimals(c.NICCores, 2))
	}
	return t
}

func (o *hyperOutcome) notes() []string {
	priority := func(who string, has bool) string {
		if has {
			return who + " have real-time priority"
		}
		return who + " have NO real-time priority: allow it with CAP_SYS_NICE or `ulimit -r`, or the chain waits for its turn, too"
	}
	return []string{
		"modes take turns on the same processes, and after each round every replica is read and compared; latencies are those of all rounds together",
		priority("NICs", o.NICsRealTime) + "; " + priority("clients of all modes", o.ClientRealTime) + "; replicas' programs never do",
		"replicas' CPU is of their programs, all together; the NIC is software here, so its CPU, of all NIC processes, stands beside",
		"a transaction is an Append and ExecuteAndAdvance; both flush, but replicas' memory is no file's and has no medium to reach, as the paper's tmpfs",
		"paper: HyperLoop, SIGCOMM '18, §6.1, 3 replicas with ConnectX-3 NICs on machines of 16 cores beside stress-ng",
		"a p99 of fewer than 100 operations is the slowest of them",
	}
}

func (o *hyperOutcome) chart(where string) []byte {
	load := contended
	if len(o.pick(func(c hyperCell) bool { return c.Load == contended })) == 0 {
		load = idle
	}
	c := plot.Bars{
		Title:    fmt.Sprintf("p99 of group operations over %s, %s", o.Fabric, o.company(load)),
		Subtitle: where, Unit: "µs, each line ten times the one before", Log: true,
	}
	for _, mode := range o.Modes {
		c.Series = append(c.Series, plot.Series{Name: mode})
	}
	for _, i := range o.pick(func(c hyperCell) bool { return c.Load == load && c.Primitive != throughput }) {
		cell, at := o.Cells[i], i%len(o.Modes)
		if at == 0 {
			c.Rows = append(c.Rows, fmt.Sprintf("%s %d B, %d replicas", cell.Primitive, cell.Bytes, cell.Replicas))
		}
		c.Series[at].Values = append(c.Series[at].Values, float64(cell.Latency.P99)/1e3)
	}
	return c.SVG()
}
