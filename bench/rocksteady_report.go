package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/bench/plot"
)

// steadyOutcome is what `ostro bench rocksteady` found.
type steadyOutcome struct {
	Records    uint64        `json:"records"`
	ValueBytes int           `json:"value_bytes"`
	Rounds     []steadyRound `json:"rounds"`
	Ends       []endsAlone   `json:"ends_alone,omitempty"`
}

// steadyRound is one migration.
type steadyRound struct {
	System     string           `json:"system"`
	Mode       string           `json:"mode"`
	Skew       float64          `json:"skew"`
	Load       int              `json:"load_percent"`
	Round      int              `json:"round"`
	Offered    float64          `json:"offered_ops_per_second"`
	Moved      uint64           `json:"records_moved"`
	Bytes      int64            `json:"bytes_moved"` // keys and values
	Served     time.Duration    `json:"served_ns"`   // from its beginning until all records are at the target
	Took       time.Duration    `json:"took_ns"`     // from its beginning to its end: the target's copies are safe
	Wall       time.Duration    `json:"wall_ns"`     // from the wish to its end
	Calm       stretch          `json:"calm"`
	During     stretch          `json:"during"`
	Series     []seriesPoint    `json:"series"`
	Redirected int64            `json:"redirected"`
	Late       int              `json:"late"` // operations that were due and never sent
	Errors     map[string]int64 `json:"errors,omitempty"`
	Failed     string           `json:"failed,omitempty"`
}

// stretch is what clients saw for a while.
type stretch struct {
	Seconds float64       `json:"seconds"`
	Ops     float64       `json:"ops_per_second"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	P999    time.Duration `json:"p999_ns"`
	Max     time.Duration `json:"max_ns"`
	// Silence is the longest time in which nobody got an answer.
	Silence time.Duration `json:"silence_ns"`
	// CPU of source and target, in cores.
	CPU [2]float64 `json:"cpu_cores"`
}

// seriesPoint is a tenth of a second. At is since the migration began.
type seriesPoint struct {
	At   float64       `json:"at_seconds"`
	Ops  float64       `json:"ops_per_second"`
	P50  time.Duration `json:"p50_ns"`
	P999 time.Duration `json:"p999_ns"`
}

// stretchOf sums up what was answered between two moments.
func stretchOf(trail []roamPoint, from, to time.Duration, before, after [2]time.Duration) stretch {
	var took []time.Duration
	var silence time.Duration
	last := from
	for _, p := range between(trail, from, to) {
		took = append(took, p.took)
		silence, last = max(silence, p.at-last), p.at
	}
	slices.Sort(took)
	s := stretch{
		Seconds: (to - from).Seconds(), Silence: max(silence, to-last),
		P50: quantile(took, 0.5), P99: quantile(took, 0.99), P999: quantile(took, 0.999), Max: quantile(took, 1),
	}
	s.Ops = float64(len(took)) / s.Seconds
	for i := range s.CPU {
		s.CPU[i] = (after[i] - before[i]).Seconds() / s.Seconds
	}
	return s
}

// quantile is of sorted values; 0 if there are none.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

const seriesStep = 100 * time.Millisecond

// seriesOf cuts what was answered into tenths of a second.
func seriesOf(trail []roamPoint, began, moves, over time.Time) (all []seriesPoint) {
	origin := moves.Sub(began)
	end := over.Sub(began) + cooled
	for from := time.Duration(0); from+seriesStep <= end; from += seriesStep {
		s := stretchOf(between(trail, from, from+seriesStep), from, from+seriesStep, [2]time.Duration{}, [2]time.Duration{})
		all = append(all, seriesPoint{(from - origin).Seconds(), s.Ops, s.P50, s.P999})
	}
	return all
}

// between is a part of a trail, which is in order.
func between(trail []roamPoint, from, to time.Duration) []roamPoint {
	find := func(at time.Duration) int {
		i, _ := slices.BinarySearchFunc(trail, at, func(p roamPoint, at time.Duration) int { return int(p.at - at) })
		return i
	}
	return trail[find(from):find(to)]
}

// rate is in megabytes a second, until all records are at the target.
func (r steadyRound) rate() float64 { return float64(r.Bytes) / 1e6 / r.Served.Seconds() }

// safe is the rate until the copies of the target are safe.
func (r steadyRound) safe() float64 { return float64(r.Bytes) / 1e6 / r.Took.Seconds() }

func (r steadyRound) tail() float64 { return float64(r.During.P999) / float64(r.Calm.P999) }

func (o *steadyOutcome) tables() []table {
	t := table{
		title: fmt.Sprintf("Half of %s records of %d B moves (calm → meanwhile)", grouped(int64(o.Records)), 30+o.ValueBytes),
		names: 5,
		head: []string{
			"system", "mode", "skew", "load", "round", "records", "there", "safe", "MB/s", "safe MB/s", "ops/s", "p50", "p99.9", "p99.9 ratio",
			"longest", "silence", "CPU source", "CPU target", "errors",
		},
	}
	both := func(a, b string) string { return a + " → " + b }
	for _, r := range o.Rounds {
		if r.Failed != "" {
			t.add(r.System, r.Mode, decimals(r.Skew, 2), r.load(), fmt.Sprint(r.Round), "failed: "+firstLine(r.Failed), "", "", "", "", "", "", "", "", "", "", "", "", "")
			continue
		}
		a, b := r.Calm, r.During
		t.add(r.System, r.Mode, decimals(r.Skew, 2), r.load(), fmt.Sprint(r.Round), grouped(int64(r.Moved)), short(r.Served), short(r.Took),
			decimals(r.rate(), 1), decimals(r.safe(), 1),
			both(rate(a.Ops), rate(b.Ops)), both(short(a.P50), short(b.P50)), both(short(a.P999), short(b.P999)), times(r.tail()),
			both(short(a.Max), short(b.Max)), both(short(a.Silence), short(b.Silence)), both(decimals(a.CPU[0], 2), decimals(b.CPU[0], 2)), both(decimals(a.CPU[1], 2), decimals(b.CPU[1], 2)),
			fmt.Sprint(r.failures()))
	}
	all := []table{t}
	if s := o.summary(); len(s.rows) > 0 {
		all = append(all, s)
	}
	if len(o.Ends) > 0 {
		all = append(all, endsTable(o.Ends))
	}
	return all
}

// load is what was offered, in percent of the most.
func (r steadyRound) load() string { return fmt.Sprintf("%d%%", r.Load) }

// failures is how many operations got an error.
func (r steadyRound) failures() (n int64) {
	for _, c := range r.Errors {
		n += c
	}
	return n
}

// summary has the medians of each case, beside Redis'.
func (o *steadyOutcome) summary() table {
	t := table{
		title: "Medians of the rounds",
		names: 4,
		head:  []string{"system", "mode", "skew", "load", "MB/s", "safe MB/s", "of Redis", "p50", "p99.9", "p50 ratio", "p99.9 ratio", "longest"},
	}
	redis := map[int]float64{}
	for _, g := range o.groups() {
		if g[0].System == "redis" {
			redis[g[0].Load] = medianOf(g, steadyRound.rate)
		}
	}
	of := func(f func(steadyRound) time.Duration) func(steadyRound) float64 {
		return func(r steadyRound) float64 { return float64(f(r)) }
	}
	for _, g := range o.groups() {
		ratio := "-"
		if its := redis[g[0].Load]; its > 0 {
			ratio = times(medianOf(g, steadyRound.safe) / its)
		}
		p50 := medianOf(g, of(func(r steadyRound) time.Duration { return r.During.P50 }))
		p999 := medianOf(g, of(func(r steadyRound) time.Duration { return r.During.P999 }))
		longest := medianOf(g, of(func(r steadyRound) time.Duration { return r.During.Max }))
		t.add(g[0].System, g[0].Mode, decimals(g[0].Skew, 2), g[0].load(), decimals(medianOf(g, steadyRound.rate), 1), decimals(medianOf(g, steadyRound.safe), 1), ratio,
			short(time.Duration(p50)), short(time.Duration(p999)),
			times(medianOf(g, func(r steadyRound) float64 { return float64(r.During.P50) / float64(r.Calm.P50) })), times(medianOf(g, steadyRound.tail)),
			short(time.Duration(longest)))
	}
	return t
}

// groups are the rounds of each case that did not fail, in order.
func (o *steadyOutcome) groups() (all [][]steadyRound) {
	for _, r := range o.Rounds {
		if r.Failed != "" {
			continue
		}
		if n := len(all); n > 0 && all[n-1][0].System == r.System && all[n-1][0].Mode == r.Mode && all[n-1][0].Skew == r.Skew && all[n-1][0].Load == r.Load {
			all[n-1] = append(all[n-1], r)
			continue
		}
		all = append(all, []steadyRound{r})
	}
	return all
}

func (o *steadyOutcome) notes() []string {
	notes := []string{
		"source, target, third node, etcd and clients share the cores; Ostro keeps three copies of everything, Redis one",
		"MB/s counts keys and values, from the transfer of ownership until all records are at the target, and until its copies are safe (Ostro), or as long as redis-cli runs (Redis); of Redis: until all is safe",
		"calm is before each migration; silence is the longest time in which no client got an answer",
		"latencies count from when an operation was due, redirections included; every record was read back at the end",
	}
	for _, r := range o.Rounds {
		for text, n := range r.Errors {
			notes = append(notes, fmt.Sprintf("%s, %s, skew %g, round %d: %d times %q", r.System, r.Mode, r.Skew, r.Round, n, text))
		}
	}
	return notes
}

// chart shows the 99.9th percentile over time of the first round of each system.
func (o *steadyOutcome) chart(where string) []byte {
	c := plot.Lines{
		Title: "p99.9 of clients while half of a node's records moves", Subtitle: where,
		XLabel: "seconds", YLabel: "ms",
	}
	seen := map[string]bool{}
	for _, r := range o.Rounds {
		if r.Failed != "" || seen[r.System] {
			continue
		}
		seen[r.System] = true
		tail := plot.Curve{Name: r.System + ", " + r.Mode}
		for _, p := range r.Series {
			tail.X, tail.Y = append(tail.X, p.At-r.Series[0].At), append(tail.Y, float64(p.P999)/1e6)
		}
		c.Curves = append(c.Curves, tail)
	}
	return c.SVG()
}
