package bench

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAStopCountsWhereItOverlapsWhatIsCompared(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	w := &witness{stops: []coreStop{{0, at(10), at(18)}, {1, at(12), at(15)}, {1, at(40), at(42)}}}
	for _, c := range []struct {
		from, to, want int
	}{{0, 10, 0}, {0, 11, 8}, {17, 40, 8}, {18, 40, 0}, {18, 41, 2}, {30, 50, 2}, {42, 60, 0}} {
		if got := w.longest(at(c.from), at(c.to)); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("from %d to %d ms: %v, want %d ms", c.from, c.to, got, c.want)
		}
	}
	var none *witness
	if none.end(); none.longest(at(0), at(50)) != 0 {
		t.Error("nobody has seen something")
	}
}

func TestTheThreadsOfAWitnessLiveOnAndAreAsTheyWere(t *testing.T) {
	w := newWitness()
	if w == nil {
		t.Skip("not allowed to go before others")
	}
	all, err := os.ReadDir("/proc/self/task")
	w.end()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, one := range all {
		tid, _ := strconv.Atoi(one.Name())
		if isRealTime(tid) {
			t.Errorf("thread %d still goes before others", tid)
		}
		if slices.Contains(w.tids, tid) {
			seen++
			if unix.Tgkill(os.Getpid(), tid, 0) != nil {
				t.Errorf("thread %d has ended, and with it whom it had started", tid)
			}
		}
	}
	if seen == 0 || seen != len(w.tids) {
		t.Errorf("%d of %d threads were there", seen, len(w.tids))
	}
}

func TestARoundIsDisturbedByAStopOrByStolenTime(t *testing.T) {
	for _, c := range []struct {
		stopped, stolen, want time.Duration
	}{
		{0, 0, 0},
		{toleratedStop, tolerated, 0},
		{toleratedStop + 2*time.Millisecond, 0, 2 * time.Millisecond},
		{0, tolerated + time.Millisecond, time.Millisecond},
		{toleratedStop + 2*time.Millisecond, tolerated + time.Millisecond, 2 * time.Millisecond},
	} {
		if got := (steadyRound{Stopped: c.stopped, Stolen: c.stolen}).disturbance(); got != c.want {
			t.Errorf("stopped for %v, %v stolen: %v, want %v", c.stopped, c.stolen, got, c.want)
		}
	}
}

func TestARoundIsDisturbedByAnotherPaceThanThatOfItsLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		found  float64
		paces  [2]float64
		want   time.Duration
		inRows string
	}{
		{"the load was given", 0, [2]float64{5e9, 9e9}, 0, "-"},
		{"about the same", 5e9, [2]float64{5.5e9, 4.5e9}, 0, "100%"},
		{"slower at its end", 10e9, [2]float64{10e9, 5e9}, time.Second, "75%"},
		{"faster from its beginning on", 5e9, [2]float64{10e9, 10e9}, 2 * time.Second, "200%"},
	} {
		r := steadyRound{Wall: 2 * time.Second, Found: c.found, Paces: c.paces}
		if got := r.disturbance(); got != c.want {
			t.Errorf("%s: disturbed by %v, want %v", c.name, got, c.want)
		}
		if got := r.pace(); got != c.inRows {
			t.Errorf("%s: told as %s, want %s", c.name, got, c.inRows)
		}
	}
}
