package redis

import "testing"

// gathered plays windows in which some connections send so many commands each.
func gathered(conns int, callsPerRound int64) *gatherer {
	g := &gatherer{window: 1}
	nets := make([]netState, conns)
	for now := int64(0); now < 4*gatherNanos; now += gatherNanos / 10 {
		for i := range nets {
			g.meet(&nets[i])
		}
		g.round(now, callsPerRound)
	}
	return g
}

func TestALoopRestsOnlyForACrowdThatKeepsItBusy(t *testing.T) {
	for _, c := range []struct {
		what  string
		conns int
		calls int64
		load  float64
		rests bool
	}{
		{"a crowd without pipelining", 50, 4, 0.8, true},
		{"one client", 1, 1, 0.8, false},
		{"a few clients", gatherCrowd - 1, 4, 0.8, false},
		{"a crowd that pipelines", 50, 64, 0.9, false},
		{"a crowd that does little", 50, 4, 0.1, false},
		{"a round without commands", 50, 0, 0.8, false},
	} {
		if got := gathered(c.conns, c.calls).pays(c.load); got != c.rests {
			t.Errorf("%s: rests %v, want %v", c.what, got, c.rests)
		}
	}
}

func TestACrowdThatHasGoneIsForgotten(t *testing.T) {
	g := gathered(50, 4)
	var one netState
	for now := 5 * gatherNanos; now < 9*gatherNanos; now += gatherNanos / 10 {
		g.meet(&one)
		g.round(now, 1)
	}
	if g.pays(0.8) {
		t.Fatal("a loop rests for clients that have gone")
	}
}

func TestCommandsAreHeavyThatTakeLongWithoutManyRounds(t *testing.T) {
	for _, c := range []struct {
		what  string
		calls int64 // of a round
		nanos int64 // of a command
		heavy bool
	}{
		{"calls of functions", 64, 3000, true},
		{"plain reads", 64, 900, false},
		{"a crowd without pipelining, for which system calls are most of the work", 4, 4000, false},
	} {
		g := gathered(50, c.calls)
		if got := g.heavy(g.total * c.nanos); got != c.heavy {
			t.Errorf("%s: heavy %v, want %v", c.what, got, c.heavy)
		}
	}
}
