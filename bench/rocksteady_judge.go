package bench

import (
	"fmt"
	"slices"
	"time"
)

// What the claim wants.
const (
	wantedRate    = 200.0 // MB/s
	wantedOfRedis = 10.0
	wantedTail    = 3.0
	wantedGain    = 1.05 // of one mode over another: less is chance
)

// judge says of each line of the claim whether it held, at YCSB's skew and the highest load. Modes are compared round by round.
func (o *steadyOutcome) judge() {
	load := 0
	for _, r := range o.Rounds {
		load = max(load, r.Load)
	}
	g := judged{all: o.groups(), load: load}
	async := g.of("ostro", "async")
	o.Verdicts = []verdict{
		g.fast(async),
		g.fasterThanRedis(async),
		g.tails(async),
		g.stalls(async),
		o.faultless(),
		g.against("early ownership has all at the target sooner than late", ">= 1.05x", "1.38x", "late", servedTime),
		g.against("early ownership has all safe sooner than late", ">= 1.05x", "-", "late", totalTime),
		g.against("early ownership has the lower p99.9", ">= 1.05x", "lower", "late", tailTime),
		g.against("asynchronous priority pulls have the lower median until all is there", ">= 1.05x", "lower", "sync", medianTime),
	}
}

func servedTime(r steadyRound) time.Duration { return r.Served }
func totalTime(r steadyRound) time.Duration  { return r.Took }
func tailTime(r steadyRound) time.Duration   { return r.During.P999 }
func medianTime(r steadyRound) time.Duration { return r.Pulling.P50 }

// judged are the rounds that claims are about.
type judged struct {
	all  [][]steadyRound
	load int
}

// of are the rounds of a mode; none if it was not measured.
func (g judged) of(system, mode string) []steadyRound {
	for _, rounds := range g.all {
		if r := rounds[0]; r.System == system && r.Mode == mode && r.Skew == usualSkew && r.Load == g.load {
			return rounds
		}
	}
	return nil
}

const notMeasured = "not measured"

// line is a verdict about rounds, if there are any.
func line(rounds []steadyRound, v verdict, judge func(v *verdict)) verdict {
	if len(rounds) == 0 {
		v.Ours, v.Holds = "-", notMeasured
		return v
	}
	judge(&v)
	return v
}

func (g judged) fast(async []steadyRound) verdict {
	return line(async, verdict{Line: "130 B records move fast under YCSB-B", Wanted: ">= 200 MB/s", Paper: "758 MB/s"}, func(v *verdict) {
		there, safe := medianOf(async, steadyRound.rate), medianOf(async, steadyRound.safe)
		v.Ours = fmt.Sprintf("%s MB/s, %s until safe", decimals(there, 0), decimals(safe, 0))
		v.Holds = holds(reaches(there, wantedRate))
	})
}

func (g judged) fasterThanRedis(async []steadyRound) verdict {
	v := verdict{Line: "faster than Redis' resharding", Wanted: ">= 10x"}
	redis := g.of("redis", "reshard")
	if len(redis) == 0 {
		async = nil
	}
	return line(async, v, func(v *verdict) {
		its, ours := medianOf(redis, steadyRound.safe), medianOf(async, steadyRound.safe)
		v.Ours = fmt.Sprintf("%s: %s against %s MB/s", times(ours/its), decimals(ours, 1), decimals(its, 1))
		v.Holds = holds(reaches(ours/its, wantedOfRedis))
	})
}

func (g judged) tails(async []steadyRound) verdict {
	return line(async, verdict{Line: "p99.9 of clients meanwhile, to the calm before and after", Wanted: "<= 3x", Paper: "250 → 183 µs"}, func(v *verdict) {
		// Of all rounds together: the host halts the machine for some milliseconds every second or two, and one halt is
		// the p99.9 of a short stretch. By rounds the ratio says above all on which side a halt fell. But one long halt in a
		// calm is that of all calms, so the median of the rounds has to hold as well.
		var during, calm []stretch
		for _, r := range async {
			during, calm = append(during, r.During), append(calm, r.Calm)
		}
		together, middle := float64(togetherP999(during...))/float64(togetherP999(calm...)), medianOf(async, steadyRound.tail)
		v.Ours = fmt.Sprintf("%s: %s to %s (by rounds %s, %s)", times(together), short(togetherP999(during...)), short(togetherP999(calm...)),
			times(middle), spreadOf(async, steadyRound.tail))
		v.Holds = holds(max(together, middle) <= wantedTail)
	})
}

func (g judged) stalls(async []steadyRound) verdict {
	return line(async, verdict{Line: "longest silence and longest wait meanwhile, to the calm", Wanted: "<= 3x"}, func(v *verdict) {
		silence, wait := medianOf(async, steadyRound.quiet), medianOf(async, steadyRound.wait)
		longest := async[0].During
		for _, r := range async {
			longest.Silence, longest.Max = max(longest.Silence, r.During.Silence), max(longest.Max, r.During.Max)
		}
		v.Ours = fmt.Sprintf("%s and %s; the longest %s and %s", times(silence), times(wait), short(longest.Silence), short(longest.Max))
		v.Holds = holds(max(silence, wait) <= wantedTail)
	})
}

// spreadOf is from where to where rounds went.
func spreadOf(rounds []steadyRound, figure func(steadyRound) float64) string {
	all := figures(rounds, figure)
	return times(slices.Min(all)) + " to " + times(slices.Max(all))
}

// against compares async with another mode: how many times as much that one had, round by round.
func (g judged) against(claim, wanted, paper, mode string, figure func(steadyRound) time.Duration) verdict {
	async, other := g.of("ostro", "async"), g.of("ostro", mode)
	n := min(len(async), len(other))
	return line(async[:n], verdict{Line: claim, Wanted: wanted, Paper: paper}, func(v *verdict) {
		var ratios []float64
		for i := range n {
			ratios = append(ratios, float64(figure(other[i]))/float64(figure(async[i])))
		}
		middle := func(rounds []steadyRound) string {
			return short(time.Duration(medianOf(rounds, func(r steadyRound) float64 { return float64(figure(r)) })))
		}
		ratio := median(ratios)
		v.Ours = fmt.Sprintf("%s: %s against %s", times(ratio), middle(async), middle(other))
		v.Holds = holds(reaches(ratio, wantedGain))
	})
}

// faultless is about all migrations of ours, in whatever mode.
func (o *steadyOutcome) faultless() verdict {
	v := verdict{Line: "no error, in any mode; every record there", Wanted: "0"}
	failed, moves, errors := 0, 0, int64(0)
	for _, r := range o.Rounds {
		if r.System != "ostro" {
			continue
		}
		moves++
		errors += r.failures()
		if r.Failed != "" {
			failed++
		}
	}
	v.Ours = fmt.Sprintf("%d errors in %s, %d failed", errors, many(moves, "migration", "migrations"), failed)
	v.Holds = holds(moves > 0 && errors == 0 && failed == 0)
	return v
}
