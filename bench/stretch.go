package bench

import (
	"cmp"
	"slices"
	"time"
)

// stretch is what clients saw for a while.
type stretch struct {
	Seconds float64       `json:"seconds"`
	Ops     float64       `json:"ops_per_second"` // that were answered then
	Samples int           `json:"samples"`        // operations that were due then; the latencies below are theirs
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	P999    time.Duration `json:"p999_ns"`
	Max     time.Duration `json:"max_ns"`
	// Silence is the longest time in which nobody got an answer.
	Silence time.Duration `json:"silence_ns"`
	// CPU of source and target, in cores.
	CPU [2]float64 `json:"cpu_cores"`

	slowest []time.Duration // a twentieth of the samples, for togetherP999
}

// span is a piece of time, counted from when a load began, and what processes ran in it.
type span struct {
	from, to time.Duration
	cpu      [2]time.Duration
}

// stretchOf sums up what clients saw in some spans. A latency belongs to the span in which its operation was due:
// if it belonged to where the answer came, one that waits for the end of a stall would be counted as after it.
func stretchOf(trail []roamPoint, spans ...span) (s stretch) {
	var took []time.Duration
	for _, p := range trail {
		if due := p.at - p.took; slices.ContainsFunc(spans, func(w span) bool { return due >= w.from && due < w.to }) {
			took = append(took, p.took)
		}
	}
	answers := 0
	var cpu [2]time.Duration
	for _, w := range spans {
		last := w.from
		for _, p := range between(trail, w.from, w.to) {
			s.Silence, last = max(s.Silence, p.at-last), p.at
			answers++
		}
		s.Silence = max(s.Silence, w.to-last)
		s.Seconds += (w.to - w.from).Seconds()
		for i := range cpu {
			cpu[i] += w.cpu[i]
		}
	}
	slices.Sort(took)
	s.Samples = len(took)
	s.slowest = slices.Clone(took[len(took)-len(took)/slowestShare:])
	s.P50, s.P99, s.P999, s.Max = quantile(took, 0.5), quantile(took, 0.99), quantile(took, 0.999), quantile(took, 1)
	s.Ops = float64(answers) / s.Seconds
	for i := range s.CPU {
		s.CPU[i] = cpu[i].Seconds() / s.Seconds
	}
	return s
}

// slowestShare is the part of the samples that is kept: enough for the slowest thousandth of fifty stretches, were they all
// of one.
const slowestShare = 20

// togetherP999 is the p99.9 of all operations of some stretches.
func togetherP999(all ...stretch) time.Duration {
	samples := 0
	var slowest []time.Duration
	for _, s := range all {
		samples += s.Samples
		slowest = append(slowest, s.slowest...)
	}
	slices.SortFunc(slowest, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	if len(slowest) == 0 {
		return 0
	}
	return slowest[min(len(slowest)-1, max(samples-1-int(0.999*float64(samples)), 0))]
}

// quantile is of sorted values; 0 if there are none.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// between is a part of a trail, which is in the order of answers.
func between(trail []roamPoint, from, to time.Duration) []roamPoint {
	find := func(at time.Duration) int {
		i, _ := slices.BinarySearchFunc(trail, at, func(p roamPoint, at time.Duration) int { return int(p.at - at) })
		return i
	}
	return trail[find(from):find(to)]
}

// seriesPoint is a tenth of a second. At is since the migration was asked for.
type seriesPoint struct {
	At   float64       `json:"at_seconds"`
	Ops  float64       `json:"ops_per_second"` // that were answered
	P50  time.Duration `json:"p50_ns"`         // of those that were due
	P999 time.Duration `json:"p999_ns"`
}

const seriesStep = 100 * time.Millisecond

// seriesOf cuts a trail into tenths of a second until end.
func seriesOf(trail []roamPoint, origin, end time.Duration) []seriesPoint {
	steps := int(end / seriesStep)
	took, answers := make([][]time.Duration, steps), make([]int, steps)
	for _, p := range trail {
		if i := int(p.at / seriesStep); i < steps {
			answers[i]++
		}
		if i := int((p.at - p.took) / seriesStep); i >= 0 && i < steps {
			took[i] = append(took[i], p.took)
		}
	}
	all := make([]seriesPoint, steps)
	for i := range all {
		slices.Sort(took[i])
		at := time.Duration(i)*seriesStep - origin
		all[i] = seriesPoint{at.Seconds(), float64(answers[i]) / seriesStep.Seconds(), quantile(took[i], 0.5), quantile(took[i], 0.999)}
	}
	return all
}
