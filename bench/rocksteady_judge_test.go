package bench

import (
	"strings"
	"testing"
	"time"
)

// steadyOf is a round at the skew and load that claims are about: 100 MB within served, and safe within took.
func steadyOf(system, mode string, served, took, p50, p999 time.Duration) steadyRound {
	calm, during := tailed(10*time.Millisecond), tailed(p999)
	calm.P50, during.P50 = time.Millisecond, p50
	return steadyRound{System: system, Mode: mode, Skew: usualSkew, Load: 80, Bytes: 100e6, Served: served, Took: took, Calm: calm, During: during, Pulling: during}
}

// tailed is a stretch of a thousand operations, one of which took long.
func tailed(p999 time.Duration) stretch {
	return stretch{Samples: 1000, P999: p999, Silence: p999, Max: p999, slowest: []time.Duration{time.Microsecond, p999}}
}

// What each line of the claim is about, in its order.
const (
	lineRate = iota
	lineRedis
	lineTail
	lineSilence
	lineErrors
	lineLateThere
	lineLateTime
	lineLateTail
	lineSyncMedian
	steadyLines
)

func TestEachLineOfTheRocksteadyClaimIsJudgedByItsFigure(t *testing.T) {
	const ms = time.Millisecond
	good := func() *steadyOutcome {
		return &steadyOutcome{Rounds: []steadyRound{
			steadyOf("ostro", "async", 400*ms, 500*ms, 2*ms, 20*ms),
			steadyOf("ostro", "late", 800*ms, 800*ms, 2*ms, 40*ms),
			steadyOf("ostro", "sync", 400*ms, 500*ms, 3*ms, 20*ms),
			steadyOf("redis", "reshard", 10*time.Second, 10*time.Second, 2*ms, 20*ms),
		}}
	}
	for name, c := range map[string]struct {
		change func(o *steadyOutcome)
		want   map[int]string // of those that do not hold
	}{
		"all as it should be":       {func(*steadyOutcome) {}, nil},
		"slow":                      {func(o *steadyOutcome) { o.Rounds[0].Served = 501 * ms }, map[int]string{lineRate: "NO"}},
		"Redis is nearly as fast":   {func(o *steadyOutcome) { o.Rounds[3].Took = 4900 * ms }, map[int]string{lineRedis: "NO"}},
		"clients wait":              {func(o *steadyOutcome) { o.Rounds[0].During.slowest = tailed(31 * ms).slowest }, map[int]string{lineTail: "NO"}},
		"clients hear nothing":      {func(o *steadyOutcome) { o.Rounds[0].During.Silence = 31 * ms }, map[int]string{lineSilence: "NO"}},
		"some keys hang":            {func(o *steadyOutcome) { o.Rounds[0].During.Max = 31 * ms }, map[int]string{lineSilence: "NO"}},
		"an error in another mode":  {func(o *steadyOutcome) { o.Rounds[2].Errors = map[string]int64{"lost": 1} }, map[int]string{lineErrors: "NO"}},
		"an answer that never came": {func(o *steadyOutcome) { o.Rounds[0].Late = 1 }, map[int]string{lineErrors: "NO"}},
		"an error of Redis is none of ours": {
			func(o *steadyOutcome) { o.Rounds[3].Errors = map[string]int64{"lost": 1} }, nil,
		},
		"a move that failed is not compared": {
			func(o *steadyOutcome) { o.Rounds[2].Failed = "it did" },
			map[int]string{lineErrors: "NO", lineSyncMedian: notMeasured},
		},
		"late is there as soon":       {func(o *steadyOutcome) { o.Rounds[1].Served = 410 * ms }, map[int]string{lineLateThere: "NO"}},
		"late is safe as soon":        {func(o *steadyOutcome) { o.Rounds[1].Took = 510 * ms }, map[int]string{lineLateTime: "NO"}},
		"late disturbs as little":     {func(o *steadyOutcome) { o.Rounds[1].During.P999 = 20 * ms }, map[int]string{lineLateTail: "NO"}},
		"one by one is as fast":       {func(o *steadyOutcome) { o.Rounds[2].Pulling.P50 = 2 * ms }, map[int]string{lineSyncMedian: "NO"}},
		"nobody waited for a record":  {func(o *steadyOutcome) { o.Rounds[0].Pulling.P50 = 0 }, map[int]string{lineSyncMedian: "NO"}},
		"nothing was timed":           {func(o *steadyOutcome) { o.Rounds[0].Served = 0 }, map[int]string{lineRate: "NO", lineLateThere: "NO"}},
		"at another skew is no claim": {func(o *steadyOutcome) { o.Rounds[1].Skew = 0 }, map[int]string{lineLateThere: notMeasured, lineLateTime: notMeasured, lineLateTail: notMeasured}},
		"without Redis": {
			func(o *steadyOutcome) { o.Rounds = o.Rounds[:3] }, map[int]string{lineRedis: notMeasured},
		},
		"only the highest load counts": {
			func(o *steadyOutcome) {
				lower := steadyOf("ostro", "async", 9*time.Second, 9*time.Second, ms, 90*ms)
				lower.Load = 30
				o.Rounds = append(o.Rounds, lower)
			}, nil,
		},
		"the median of rounds counts": {
			func(o *steadyOutcome) {
				o.Rounds = append(o.Rounds, o.Rounds[0], steadyOf("ostro", "async", 9*time.Second, 500*ms, 2*ms, 20*ms))
			}, nil,
		},
		"a slow round among fast ones": {
			func(o *steadyOutcome) {
				slow := o.Rounds[0]
				slow.During.slowest = tailed(31 * ms).slowest
				slow.During.slowest[0] = 31 * ms // Two of the three slowest of all rounds.
				o.Rounds = append(o.Rounds, slow, o.Rounds[0])
			}, nil,
		},
		"a calm with a long halt hides nothing": {
			func(o *steadyOutcome) {
				o.Rounds[0].Calm = tailed(time.Second)
				slow := steadyOf("ostro", "async", 400*ms, 500*ms, 2*ms, 20*ms)
				slow.During.P999 = 40 * ms
				o.Rounds = append(o.Rounds, slow, slow)
			}, map[int]string{lineTail: "NO"},
		},
		"a try that the host disturbed counts with its errors only": {
			func(o *steadyOutcome) {
				slow := o.Rounds[0]
				slow.Served, slow.Disturbed, slow.Late = time.Minute, true, 1
				o.Rounds = append(o.Rounds, slow, slow)
			}, map[int]string{lineErrors: "NO"},
		},
		"two slow rounds of three": {
			func(o *steadyOutcome) {
				o.Rounds[0].During.slowest = tailed(31 * ms).slowest
				slow := o.Rounds[0]
				slow.During.slowest = []time.Duration{31 * ms, 31 * ms}
				o.Rounds = append(o.Rounds, slow, steadyOf("ostro", "async", 400*ms, 500*ms, 2*ms, 20*ms))
			}, map[int]string{lineTail: "NO"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			c.change(o)
			o.judge()
			if len(o.Verdicts) != steadyLines {
				t.Fatalf("%d verdicts: %+v", len(o.Verdicts), o.Verdicts)
			}
			for i, v := range o.Verdicts {
				want := "yes"
				if other, ok := c.want[i]; ok {
					want = other
				}
				if v.Holds != want {
					t.Errorf("%+v, want %s", v, want)
				}
			}
		})
	}
}

func TestNothingMeasuredIsNothingThatHolds(t *testing.T) {
	o := new(steadyOutcome)
	o.judge()
	for _, v := range o.Verdicts {
		if v.Holds == "yes" {
			t.Errorf("%+v", v)
		}
	}
}

func TestTheReportSaysWhatIsMissing(t *testing.T) {
	o := &steadyOutcome{Rounds: []steadyRound{steadyOf("ostro", "async", time.Second, time.Second, 1, 1)}}
	says := func(text string) bool { return strings.Contains(strings.Join(o.notes(), "\n"), text) }
	if says("nobody looked") || says("redis failed") {
		t.Errorf("nothing is missing, but it says %q", o.notes())
	}
	o.Rounds[0].Unwitnessed, o.RedisFailed = true, "it died"
	if !says("nobody looked for stops in 1") || !says("redis failed, and has no further rounds: it died") || o.Rounds[0].stop() != "?" {
		t.Errorf("it says %q", o.notes())
	}
}
