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
