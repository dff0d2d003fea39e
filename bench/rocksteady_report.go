package bench

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// steadyOutcome is what `ostro bench rocksteady` found.
type steadyOutcome struct {
	Records    uint64        `json:"records"`
	ValueBytes int           `json:"value_bytes"`
	Rounds     []steadyRound `json:"rounds"`
	// RedisFailed is why there are not all rounds of Redis.
	RedisFailed string      `json:"redis_failed,omitempty"`
	Ends        []endsAlone `json:"ends_alone,omitempty"`
	Verdicts    []verdict   `json:"verdicts"`
}

// steadyRound is one migration.
type steadyRound struct {
	System  string        `json:"system"`
	Mode    string        `json:"mode"`
	Skew    float64       `json:"skew"`
	Load    int           `json:"load_percent"`
	Round   int           `json:"round"`
	Offered float64       `json:"offered_ops_per_second"`
	Moved   uint64        `json:"records_moved"`
	Bytes   int64         `json:"bytes_moved"` // keys and values
	Served  time.Duration `json:"served_ns"`   // from its beginning until all records are at the target
	Took    time.Duration `json:"took_ns"`     // from its beginning to its end: the target's copies are safe
	Wall    time.Duration `json:"wall_ns"`     // from the wish to its end
	Closed  time.Duration `json:"closed_ns"`   // nobody served when ownership moved; 0: not known
	Partial bool          `json:"partial,omitempty"`
	Stolen  time.Duration `json:"stolen_ns"` // by the host, from all cores
	// Stopped is the longest time for which a core stood still during Calm and During, unless nobody looked.
	Stopped     time.Duration `json:"stopped_ns"`
	Unwitnessed bool          `json:"unwitnessed,omitempty"`
	// Paces are of a core before the round and after it, and Found is what it was when the load was found; 0 if that was given.
	Paces [2]float64 `json:"paces"`
	Found float64    `json:"pace_found,omitempty"`
	// Disturbed says that the host took more from it than from another try of the round, which counts instead.
	Disturbed bool `json:"disturbed,omitempty"`
	// Calm is Before and After together; Aftermath is what lies between the end and After.
	Calm      stretch `json:"calm"`
	Before    stretch `json:"before"`
	During    stretch `json:"during"`
	Pulling   stretch `json:"pulling"` // of During, from the transfer until all records are at the target
	Aftermath stretch `json:"aftermath"`
	After     stretch `json:"after"`

	PriorityPulls int64            `json:"priority_pulls"`
	PriorityKeys  int64            `json:"priority_keys"`
	Redirected    int64            `json:"redirected"`
	Late          int              `json:"late"` // operations that were due and got no answer
	Errors        map[string]int64 `json:"errors,omitempty"`
	Failed        string           `json:"failed,omitempty"`
	Series        []seriesPoint    `json:"series"`
}

// disturbance is by how much the host did more to a round than is tolerated.
func (r steadyRound) disturbance() time.Duration {
	most := max(r.Stopped-toleratedStop, r.Stolen-tolerated, 0)
	if off := r.offPace(); off > toleratedPace {
		most = max(most, time.Duration(off*float64(r.Wall)))
	}
	return most
}

// offPace is by what part a core's pace was another one than when the load was found.
func (r steadyRound) offPace() (most float64) {
	if r.Found == 0 {
		return 0
	}
	for _, pace := range r.Paces {
		most = max(most, math.Abs(pace/r.Found-1))
	}
	return most
}

// pace is what a core's was, for a table: in percent of when the load was found.
func (r steadyRound) pace() string {
	if r.Found == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 50*(r.Paces[0]+r.Paces[1])/r.Found)
}

// rate is in megabytes a second, until all records are at the target.
func (r steadyRound) rate() float64 { return float64(r.Bytes) / 1e6 / r.Served.Seconds() }

// safe is the rate until the copies of the target are safe.
func (r steadyRound) safe() float64 { return float64(r.Bytes) / 1e6 / r.Took.Seconds() }

func (r steadyRound) tail() float64  { return float64(r.During.P999) / float64(r.Calm.P999) }
func (r steadyRound) quiet() float64 { return float64(r.During.Silence) / float64(r.Calm.Silence) }

// wait is of the one request that waited longest: half of the keys may hang while nobody sees a silence, for the others answer.
func (r steadyRound) wait() float64 { return float64(r.During.Max) / float64(r.Calm.Max) }

// counts is whether figures of it do; its errors do in any case.
func (r steadyRound) counts() bool { return r.Failed == "" && !r.Disturbed }

// load is what was offered, in percent of the most.
func (r steadyRound) load() string { return fmt.Sprintf("%d%%", r.Load) }

// stop is the longest stop of a core, for a table.
func (r steadyRound) stop() string {
	if r.Unwitnessed {
		return "?"
	}
	return short(r.Stopped)
}

// failures is how many operations got an error, or no answer.
func (r steadyRound) failures() (n int64) {
	for _, c := range r.Errors {
		n += c
	}
	return n + int64(r.Late)
}

func (o *steadyOutcome) tables() []table {
	all := []table{o.roundsTable()}
	if s := o.summary(); len(s.rows) > 0 {
		all = append(all, s)
	}
	if len(o.Ends) > 0 {
		all = append(all, endsTable(o.Ends))
	}
	return append(all, verdictsTable(o.Verdicts))
}

func (o *steadyOutcome) roundsTable() table {
	t := table{
		title: fmt.Sprintf("Half of %s records of %d B moves (calm → meanwhile; CPU in cores)", grouped(int64(o.Records)), 30+o.ValueBytes),
		names: 5,
		head: []string{
			"system", "mode", "skew", "load", "round", "host", "stop", "pace", "records", "closed", "there", "safe", "MB/s", "safe MB/s", "ops/s", "p50", "p99.9", "ratio",
			"silence", "CPU source", "CPU target", "priority pulls", "keys", "errors",
		},
	}
	both := func(a, b string) string { return a + " → " + b }
	for _, r := range o.Rounds {
		if r.Disturbed {
			continue
		}
		names := []string{r.System, r.Mode, decimals(r.Skew, 2), r.load(), fmt.Sprint(r.Round)}
		if r.Failed != "" {
			row := append(names, short(r.Stolen), r.stop(), r.pace(), "failed: "+firstLine(r.Failed))
			t.add(append(row, make([]string, len(t.head)-len(row))...)...)
			continue
		}
		a, b := r.Calm, r.During
		t.add(append(names, short(r.Stolen), r.stop(), r.pace(), grouped(int64(r.Moved)), short(r.Closed), short(r.Served), short(r.Took),
			decimals(r.rate(), 1), decimals(r.safe(), 1),
			both(rate(a.Ops), rate(b.Ops)), both(short(a.P50), short(b.P50)), both(short(a.P999), short(b.P999)), times(r.tail()),
			both(short(a.Silence), short(b.Silence)), both(decimals(a.CPU[0], 2), decimals(b.CPU[0], 2)), both(decimals(a.CPU[1], 2), decimals(b.CPU[1], 2)),
			grouped(r.PriorityPulls), grouped(r.PriorityKeys), fmt.Sprint(r.failures()))...)
	}
	return t
}

// paperRates are Rocksteady's, in MB/s, Figure 2.9.
var paperRates = map[string]string{"async": "758", "none": "904", "late": "549"}

// summary has the medians of each case, beside Redis' and the paper's.
func (o *steadyOutcome) summary() table {
	t := table{
		title: "Medians of the rounds",
		names: 4,
		head:  []string{"system", "mode", "skew", "load", "rounds", "MB/s", "paper", "safe MB/s", "of Redis", "p50", "p99.9", "p50 ratio", "p99.9 ratio", "p50 after", "longest", "CPU source", "CPU target"},
	}
	groups := o.groups()
	redis := map[int]float64{}
	for _, g := range groups {
		if g[0].System == "redis" {
			redis[g[0].Load] = medianOf(g, steadyRound.safe)
		}
	}
	for _, g := range groups {
		ratio, paper := "-", "-"
		if its := redis[g[0].Load]; its > 0 {
			ratio = times(medianOf(g, steadyRound.safe) / its)
		}
		if text, known := paperRates[g[0].Mode]; known && g[0].Skew == usualSkew {
			paper = text
		}
		of := func(f func(steadyRound) time.Duration) string {
			return short(time.Duration(medianOf(g, func(r steadyRound) float64 { return float64(f(r)) })))
		}
		t.add(g[0].System, g[0].Mode, decimals(g[0].Skew, 2), g[0].load(), fmt.Sprint(len(g)),
			decimals(medianOf(g, steadyRound.rate), 1), paper, decimals(medianOf(g, steadyRound.safe), 1), ratio,
			of(func(r steadyRound) time.Duration { return r.During.P50 }), of(func(r steadyRound) time.Duration { return r.During.P999 }),
			times(medianOf(g, func(r steadyRound) float64 { return float64(r.During.P50) / float64(r.Calm.P50) })), times(medianOf(g, steadyRound.tail)),
			of(func(r steadyRound) time.Duration { return r.After.P50 }), of(func(r steadyRound) time.Duration { return r.During.Max }),
			decimals(medianOf(g, func(r steadyRound) float64 { return r.During.CPU[0] }), 2), decimals(medianOf(g, func(r steadyRound) float64 { return r.During.CPU[1] }), 2))
	}
	return t
}

// groups are the rounds of each case that count and did not fail, in the order in which they first came.
func (o *steadyOutcome) groups() (all [][]steadyRound) {
	for _, r := range o.Rounds {
		if !r.counts() {
			continue
		}
		same := func(g []steadyRound) bool {
			return g[0].System == r.System && g[0].Mode == r.Mode && g[0].Skew == r.Skew && g[0].Load == r.Load
		}
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i] = append(all[i], r)
			continue
		}
		all = append(all, []steadyRound{r})
	}
	return all
}

// fewSamples is from where on a 99.9th percentile is that of ten operations.
const fewSamples = 10_000

func (o *steadyOutcome) notes() []string {
	notes := []string{
		"source, target, third node, etcd and clients share the cores; Ostro keeps three copies of everything, Redis one",
		"MB/s counts keys and values, from the transfer of ownership until all records are at the target, and until its copies are safe (Ostro), or as long as redis-cli runs (Redis); of Redis: until all is safe",
		"calm is before and after each migration, together; silence is the longest time in which no client got an answer",
		"latencies count from when an operation was due, redirections included, and belong to the time in which it was due; every record was read back at the end",
		"back and forth: every second migration concentrates the load on one node again",
		o.held(),
	}
	if o.RedisFailed != "" {
		notes = append(notes, "redis failed, and has no further rounds: "+o.RedisFailed)
	}
	for _, r := range o.Rounds {
		where := fmt.Sprintf("%s, %s, skew %g, load %s, round %d", r.System, r.Mode, r.Skew, r.load(), r.Round)
		for text, n := range r.Errors {
			notes = append(notes, fmt.Sprintf("%s: %d times %q", where, n, text))
		}
		if r.Late > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d operations got no answer", where, r.Late))
		}
		if r.Partial {
			notes = append(notes, where+": it was broken off when its time was over, and its records were not read back; the rate is of what it had moved")
		}
		if few := min(r.During.Samples, r.Calm.Samples); r.counts() && few < fewSamples {
			notes = append(notes, fmt.Sprintf("%s: %d operations are too few for a 99.9th percentile: more --records or a higher load would do", where, few))
		}
	}
	slices.Sort(notes[6:])
	return notes
}

// held tells what the host of the machine did to the rounds.
func (o *steadyOutcome) held() string {
	var again, disturbed, unwitnessed int
	for _, r := range o.Rounds {
		if r.Unwitnessed {
			unwitnessed++
		}
		switch {
		case r.Disturbed:
			again++
		case r.disturbance() > 0:
			disturbed++
		}
	}
	said := fmt.Sprintf("of %d rounds the host stopped a core for more than %s in what is compared, or took more than %s of the cores, or the pace of a core was not within %.0f%% of what it was when the load was found, in %d; %d more were run again for it",
		len(o.Rounds)-again, short(toleratedStop), short(tolerated), 100*toleratedPace, disturbed, again)
	if unwitnessed > 0 {
		said += fmt.Sprintf("; nobody looked for stops in %d, for which threads are needed that go before all others: root may have them", unwitnessed)
	}
	return said
}
