package bench

import (
	"testing"
	"time"
)

// A stall from 100 to 200 ms: ten operations that were due in it are answered after it, all at once.
func stalled() (trail []roamPoint) {
	const ms = time.Millisecond
	for at := time.Duration(0); at < 100; at += 10 {
		trail = append(trail, roamPoint{at*ms + ms, ms})
	}
	for due := time.Duration(100); due < 200; due += 10 {
		trail = append(trail, roamPoint{200 * ms, (200 - due) * ms})
	}
	for at := time.Duration(200); at < 300; at += 10 {
		trail = append(trail, roamPoint{at*ms + ms, ms})
	}
	return trail
}

func TestWhoWaitsForTheEndOfAStallIsCountedInIt(t *testing.T) {
	const ms = time.Millisecond
	in := stretchOf(stalled(), span{from: 100 * ms, to: 200 * ms, cpu: [2]time.Duration{50 * ms, 0}})
	if in.Samples != 10 || in.Max != 100*ms || in.P50 != 60*ms || in.Ops != 0 || in.Silence != 100*ms || in.CPU[0] != 0.5 {
		t.Errorf("%+v", in)
	}
	calm := stretchOf(stalled(), span{from: 0, to: 100 * ms}, span{from: 200 * ms, to: 300 * ms})
	if calm.Samples != 20 || calm.Max != ms || calm.Seconds != 0.2 || calm.Silence != 10*ms {
		t.Errorf("%+v", calm)
	}
}

func TestASeriesHasEveryOperationOnce(t *testing.T) {
	series := seriesOf(stalled(), 100*time.Millisecond, 300*time.Millisecond)
	if len(series) != 3 || series[0].At != -0.1 || series[1].P999 != 100*time.Millisecond || series[1].Ops != 0 || series[2].Ops != 200 {
		t.Errorf("%+v", series)
	}
}

func TestTheSlowestOfSeveralStretchesAreTakenTogether(t *testing.T) {
	at := func(n int, slow ...time.Duration) stretch { // n quick ones and some slow ones
		var trail []roamPoint
		for i := range n {
			trail = append(trail, roamPoint{at: time.Duration(i), took: 1})
		}
		for _, d := range slow {
			trail = append(trail, roamPoint{at: time.Duration(n) + d, took: d})
		}
		return stretchOf(trail, span{from: -1, to: time.Duration(n + 1)})
	}
	one, other := at(2990, 7, 8, 9, 10), at(1000)
	if got := togetherP999(one, other); got != 7 {
		t.Errorf("of 3994 operations, four of them slow, p99.9 is %d", got)
	}
	if got := togetherP999(one); got != one.P999 {
		t.Errorf("of one stretch it is %d, and not its own, %d", got, one.P999)
	}
	if got := togetherP999(); got != 0 {
		t.Errorf("of nothing it is %d", got)
	}
}
