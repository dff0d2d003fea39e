package functions

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestALimiterGivesABurstAndThenItsRate(t *testing.T) {
	g := newExample(t, "limiter")
	take := func(want string, args ...any) {
		t.Helper()
		if got := g.call(t, "take", "client", append([]any{10, 5}, args...)...); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	take("1 4 0")
	take("1 1 0", 3)
	take("0 1 100", 2)
	take("1 0 0")
	take("0 0 100")
	g.now = g.now.Add(99 * time.Millisecond)
	take("0 0 1")
	g.now = g.now.Add(time.Millisecond)
	take("1 0 0")
	g.now = g.now.Add(250 * time.Millisecond)
	if got := g.call(t, "peek", "client", 10, 5); got != "2" {
		t.Fatalf("%s tokens, want 2", got)
	}
	g.now = g.now.Add(time.Hour)
	take("1 0 0", 5)
	if g.ttl["client"] != 501*time.Millisecond {
		t.Fatalf("an empty bucket is kept for %v: it is full after 500ms", g.ttl["client"])
	}
}

func TestTheLargestLimitsDoNotOverflow(t *testing.T) {
	g := newExample(t, "limiter")
	for _, rate := range []int{1, 1_000_000_000} {
		g.data = table{}
		g.call(t, "take", "client", rate, 1_000_000_000, 1_000_000_000)
		g.now = g.now.Add(time.Nanosecond * 1_000_000)
		if got, want := g.call(t, "peek", "client", rate, 1_000_000_000), rate/1000; got != fmt.Sprint(want) {
			t.Fatalf("%s tokens after a millisecond at %d a second, want %d", got, rate, want)
		}
		g.now = g.now.Add(40 * 365 * 24 * time.Hour)
		if got := g.call(t, "peek", "client", rate, 1_000_000_000); got != "1000000000" {
			t.Fatalf("%s tokens after forty years", got)
		}
	}
}

// What is taken in any span of time is never more than the burst and the rate allow.
func TestALimiterNeverGivesMoreThanItMay(t *testing.T) {
	g := newExample(t, "limiter")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const rate, burst = 7, 20
	begin, taken := g.now, 0
	for range 3000 {
		g.now = g.now.Add(time.Duration(random.IntN(200)) * time.Millisecond)
		cost := 1 + random.IntN(4)
		if g.call(t, "take", "client", rate, burst, cost)[0] == '1' {
			taken += cost
		}
		if most := burst + rate*g.now.Sub(begin).Seconds(); float64(taken) > most+1e-6 {
			t.Fatalf("%d tokens after %v, and at most %.1f were there", taken, g.now.Sub(begin), most)
		}
	}
	if least := rate * g.now.Sub(begin).Seconds() * 0.9; float64(taken) < least {
		t.Fatalf("%d tokens after %v, and %.1f should have been given", taken, g.now.Sub(begin), least)
	}
}

func TestALimiterRefusesNonsense(t *testing.T) {
	g := newExample(t, "limiter")
	g.refused(t, 2, "take", "client", 0, 5)
	g.refused(t, 2, "take", "client", 10, -5)
	g.refused(t, 2, "take", "client", 1_000_000_001, 5)
	g.refused(t, 3, "take", "client", 10, 5, 6)
	g.refused(t, 241, "take", "client", 10)
	g.refused(t, 241, "take", "", 10, 5)
	g.data["client"] = "no bucket"
	g.refused(t, 1, "take", "client", 10, 5)
}
