package meta

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// fall is a fault at a step of a migration from a to b.
type fall struct {
	at   int
	node int
	how  string
}

var fallings = []string{"crash and come back", "crash for good", "lose the lease and come back", "lose the lease for good"}

// happen brings a fault about. Who falls for good is recovered, and comes back with an empty log.
func (w *modelWorld) happen(f fall) error {
	n := w.nodes[f.node]
	w.trace = append(w.trace, fmt.Sprintf("%s: %s", n.id, f.how))
	if f.how == fallings[0] || f.how == fallings[1] {
		n.crash(f.at%2 == 0)
	}
	if n.alive() {
		w.expire(n)
	}
	if err := w.check(); err != nil {
		return err
	}
	if (f.how == fallings[1] || f.how == fallings[3]) && slices.Contains(w.now().Dead(), n.id) {
		w.recover(n, f.at%3 == 0)
	}
	return w.check()
}

// play has a migration that is wished for go its way, with clients at work and faults on the way; it is cancelled at a step, too, if
// that is not negative.
func (w *modelWorld) play(rng *rand.Rand, wish string, cancel int, falls ...fall) error {
	w.falls, w.moves = 0, 1
	for at := range 60 {
		for _, f := range falls {
			if f.at == at {
				if err := w.happen(f); err != nil {
					return err
				}
			}
		}
		all := w.steps()
		kind := progress
		if at%3 == 0 {
			kind = client
		}
		all = slices.DeleteFunc(all, func(s modelStep) bool { return s.kind != kind || isMigration(s) })
		switch {
		case at == 4:
			all = slices.DeleteFunc(w.steps(), func(s modelStep) bool { return s.name != wish })
		case at == cancel:
			all = slices.DeleteFunc(w.steps(), func(s modelStep) bool { return s.name != "migration 1 is cancelled" })
		}
		if len(all) == 0 {
			continue
		}
		if err := w.run(all[rng.IntN(len(all))]); err != nil {
			return err
		}
	}
	if err := w.settle(rng); err != nil {
		return err
	}
	return w.reopen(rng)
}

// isMigration tells whether a step is an operator's wish.
func isMigration(s modelStep) bool {
	return s.kind == client && (s.name[:2] == "mi" || len(s.name) > 20)
}

func TestADeathAtEveryStepOfAMigrationLosesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	stride := 6
	if testing.Short() {
		stride = 18
	}
	if os.Getenv("OSTRO_MODEL_RUNS") != "" {
		stride = 1
	}
	runs := 0
	for _, cancel := range []int{-1, 11, 23} {
		for at := 4; at < 40; at += stride {
			for node := range 3 {
				for _, how := range fallings {
					first := fall{at, node, how}
					second := fall{at + int(seed+uint64(runs))%12, (node + 1 + runs%2) % 3, fallings[1+2*(runs%2)]}
					for _, falls := range [][]fall{{first}, {first, second}} {
						runs++
						w := newModelWorld(3, "")
						rng := rand.New(rand.NewPCG(seed, uint64(runs)))
						wish := []string{moving[0], copied[0]}[rng.IntN(2)]
						if err := w.play(rng, wish, cancel, falls...); err != nil {
							t.Fatalf("seed %d, cancelled at %d, %v: %v after\n\t%s", seed, cancel, falls, err, w.story())
						}
					}
				}
			}
		}
	}
	t.Logf("%d runs", runs)
}
