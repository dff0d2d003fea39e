package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/bench/plot"
	"github.com/ostrodb/ostro/cluster/meta"
)

// balanceOutcome is what `ostro bench balance` found.
type balanceOutcome struct {
	Nodes   int              `json:"nodes"`
	Records uint64           `json:"records"`
	Rate    float64          `json:"offered_ops_per_second"`
	Skew    float64          `json:"skew"`
	Before  float64          `json:"ratio_before"` // hottest to average, before anything moved
	Even    time.Duration    `json:"even_ns"`      // when the quiet period began
	InTime  bool             `json:"even_in_time"`
	Final   float64          `json:"ratio_quiet"` // hottest to average in the quiet period
	Moves   []balanceMove    `json:"moves"`
	Late    int              `json:"late"`
	Errors  map[string]int64 `json:"errors,omitempty"`
	First   stretch          `json:"first"` // what clients saw at first
	Last    stretch          `json:"last"`  // and in the quiet period
	Series  []balancePoint   `json:"series"`
	Spent   int64            `json:"moved_bytes"`
	Thought string           `json:"last_decision"`
	// Verdicts say of each line of the claim whether it held.
	Verdicts []verdict `json:"verdicts"`
}

// balanceMove is a migration that the balancer asked for.
type balanceMove struct {
	At      float64 `json:"at_seconds"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Stage   string  `json:"stage"`
	Records int64   `json:"records"`
	Bytes   int64   `json:"bytes"`
	Quiet   bool    `json:"in_quiet_period"`
	Why     string  `json:"why"`
}

// balancePoint is a second.
type balancePoint struct {
	At     float64   `json:"at_seconds"`
	Ops    []float64 `json:"ops_per_second"` // by node
	Ratio  float64   `json:"ratio"`
	Moving int       `json:"moving"`
	Quiet  bool      `json:"quiet"`
}

// tell sums up.
func (o *balanceOutcome) tell(s *meta.Snapshot, began, quiet time.Time) {
	for _, m := range s.AllMigrations() {
		if m.By != meta.ByBalancer {
			continue
		}
		o.Moves = append(o.Moves, balanceMove{
			At: m.Requested.Sub(began).Seconds(), From: string(m.Source), To: string(m.Target), Stage: string(m.Stage),
			Records: m.Records, Bytes: m.Bytes, Quiet: m.Requested.After(quiet), Why: m.Why,
		})
		o.Spent += m.Bytes
	}
	o.Before = o.mean(func(p balancePoint) bool {
		return len(o.Moves) == 0 && !p.Quiet || len(o.Moves) > 0 && p.At < o.Moves[0].At
	})
	o.Final = o.mean(func(p balancePoint) bool { return p.Quiet })
	o.Thought = s.Decision.Why
}

// mean is the ratio of the sums of some seconds.
func (o *balanceOutcome) mean(of func(balancePoint) bool) float64 {
	sums := make([]float64, o.Nodes)
	for _, p := range o.Series {
		if of(p) {
			for i, ops := range p.Ops {
				sums[i] += ops
			}
		}
	}
	return ratioOf(sums)
}

func (o *balanceOutcome) quietMoves() (n int) {
	for _, m := range o.Moves {
		if m.Quiet {
			n++
		}
	}
	return n
}

func (o *balanceOutcome) tables() []table {
	load := table{title: "Commands a second by node, as they count them", names: 1, head: []string{"second"}}
	for n := range o.Nodes {
		load.head = append(load.head, fmt.Sprint("node", n+1))
	}
	load.head = append(load.head, "hottest/average", "moving", "")
	for _, p := range o.shown() {
		row := []string{decimals(p.At, 0)}
		for _, ops := range p.Ops {
			row = append(row, rate(ops))
		}
		quiet := ""
		if p.Quiet {
			quiet = "quiet period"
		}
		load.add(append(row, decimals(p.Ratio, 2), fmt.Sprint(p.Moving), quiet)...)
	}
	moves := table{title: "What the balancer moved", names: 3, head: []string{"second", "from", "to", "records", "bytes", "ended", "why"}}
	for _, m := range o.Moves {
		moves.add(decimals(m.At, 1), m.From, m.To, grouped(m.Records), bytesShort(m.Bytes), m.Stage, m.Why)
	}
	verdict := "within 1.3x"
	if !o.InTime || o.Final > even {
		verdict = "NOT within 1.3x"
	}
	sum := table{
		title: fmt.Sprintf("%s operations a second, skew %g, popular keys on node1", rate(o.Rate), o.Skew),
		names: 1,
		head:  []string{"", "ratio before", "even after", "ratio in the quiet period", "moves", "in the quiet period", "bytes", "p99.9 at first", "p99.9 quiet", "errors"},
	}
	errors := int64(0)
	for _, n := range o.Errors {
		errors += n
	}
	sum.add(verdict, times(o.Before), short(o.Even), times(o.Final), fmt.Sprint(len(o.Moves)), fmt.Sprint(o.quietMoves()), bytesShort(o.Spent),
		short(o.First.P999), short(o.Last.P999), fmt.Sprint(errors))
	return []table{load, moves, sum, verdictsTable(o.Verdicts)}
}

// verdicts are the lines of the claim.
func (o *balanceOutcome) verdicts() []verdict {
	failed := int64(o.Late)
	for _, n := range o.Errors {
		failed += n
	}
	within := "not within the time"
	if o.InTime {
		within = "after " + short(o.Even)
	}
	return []verdict{
		{Line: "the hottest node comes within 1.3x of the average", Wanted: "unasked", Ours: fmt.Sprintf("%s, from %s", within, times(o.Before)), Holds: holds(o.InTime)},
		{Line: "and stays there", Wanted: "<= 1.3x", Ours: times(o.Final), Holds: holds(o.InTime && o.Final <= even)},
		{Line: "nothing moves any more", Wanted: "0 moves", Ours: many(o.quietMoves(), "move", "moves"), Holds: holds(o.InTime && o.quietMoves() == 0)},
		{Line: "no error, every record there", Wanted: "0", Ours: many(int(failed), "error", "errors"), Holds: holds(failed == 0)},
	}
}

// shownRows is about how many rows of the series are shown.
const shownRows = 30

// shown are some of the seconds.
func (o *balanceOutcome) shown() (some []balancePoint) {
	every := max(1, len(o.Series)/shownRows)
	for i, p := range o.Series {
		if i%every == 0 || i == len(o.Series)-1 {
			some = append(some, p)
		}
	}
	return some
}

func (o *balanceOutcome) notes() []string {
	notes := []string{
		"nodes, etcd and clients share the cores; the load is open: it does not depend on how fast nodes are",
		"commands are counted by the nodes, redirected ones included; every record was read back at the end",
		"the balancer has its default settings; it last thought: " + o.Thought,
	}
	for text, n := range o.Errors {
		notes = append(notes, fmt.Sprintf("%d times %q", n, text))
	}
	slices.Sort(notes[3:])
	return notes
}

// chart shows the load of each node over time.
func (o *balanceOutcome) chart(where string) []byte {
	c := plot.Lines{Title: "Commands a second by node, under skewed load", Subtitle: where, XLabel: "seconds", YLabel: "thousands a second"}
	for n := range o.Nodes {
		curve := plot.Curve{Name: fmt.Sprint("node", n+1)}
		for _, p := range o.Series {
			curve.X, curve.Y = append(curve.X, p.At), append(curve.Y, p.Ops[n]/1000)
		}
		c.Curves = append(c.Curves, curve)
	}
	return c.SVG()
}
