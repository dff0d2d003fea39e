package meta

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func isNotYet(err error) bool { return errors.Is(err, ErrNotYet) }

// run does a step and checks all promises.
func (w *modelWorld) run(s modelStep) error {
	w.trace = append(w.trace, s.name)
	s.do()
	return w.check()
}

// weights are how likely each kind of step is in a walk.
var weights = [...]int{client: 3, progress: 10, fault: 2, chore: 2}

// walk does steps at random.
func (w *modelWorld) walk(rng *rand.Rand, steps int) error {
	for range steps {
		all := w.steps()
		kind := pickKind(rng, all)
		all = slices.DeleteFunc(all, func(s modelStep) bool { return s.kind != kind })
		if err := w.run(all[rng.IntN(len(all))]); err != nil {
			return err
		}
	}
	return nil
}

func pickKind(rng *rand.Rand, all modelSteps) modelKind {
	for {
		n := rng.IntN(17)
		for kind, weight := range weights {
			if n -= weight; n < 0 {
				if slices.ContainsFunc(all, func(s modelStep) bool { return s.kind == modelKind(kind) }) {
					return modelKind(kind)
				}
				break
			}
		}
	}
}

// settle lets nodes do all that they do by themselves, until nothing is left.
func (w *modelWorld) settle(rng *rand.Rand) error {
	w.falls, w.moves = 0, 0
	for range 400 {
		all := slices.DeleteFunc(w.steps(), func(s modelStep) bool { return s.kind != progress })
		if len(all) == 0 {
			break
		}
		if err := w.run(all[rng.IntN(len(all))]); err != nil {
			return err
		}
	}
	return w.done()
}

// reopen has every node clean its log and start again, as if that were all that happens.
func (w *modelWorld) reopen(rng *rand.Rand) error {
	for _, n := range w.nodes {
		n.clean(rng.IntN(2) == 0)
		n.crash(false)
		w.expire(n)
		n.enter()
		w.trace = append(w.trace, string(n.id)+" cleans and starts again")
		if err := w.check(); err != nil {
			return err
		}
	}
	for _, n := range w.nodes {
		n.see()
	}
	return errors.Join(w.check(), w.done())
}

// modelRun is one life of a world, from a seed.
func modelRun(seed uint64, flaw string) (*modelWorld, error) {
	rng := rand.New(rand.NewPCG(seed, 5))
	w := newModelWorld(3+int(seed%2), flaw)
	err := w.walk(rng, 20+rng.IntN(80))
	if err == nil {
		err = w.settle(rng)
	}
	if err == nil {
		err = w.reopen(rng)
	}
	return w, err
}

// modelRuns is how many lives are played; OSTRO_MODEL_RUNS has it play more.
func modelRuns(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("OSTRO_MODEL_RUNS")); err == nil {
		return n
	}
	if testing.Short() {
		return 150
	}
	return 500
}

func (w *modelWorld) story() string { return strings.Join(w.trace, "\n\t") }

func TestNothingIsLostWhateverHappensToMigrations(t *testing.T) {
	runs := modelRuns(t)
	first := rand.Uint64()
	steps := 0
	for seed := first; seed < first+uint64(runs); seed++ {
		w, err := modelRun(seed, "")
		if err != nil {
			t.Fatalf("seed %d: %v after\n\t%s", seed, err, w.story())
		}
		steps += len(w.trace)
	}
	t.Logf("%d runs from seed %d, %d steps", runs, first, steps)
}

func TestTheModelFindsFlaws(t *testing.T) {
	for _, flaw := range []string{
		"the part of a migration is forgotten",
		"nothing is left behind",
		"old tombstones are carried on",
		"a return ends at its cut",
		"only what moves is unsettled",
		"serves what it replays",
		"answers for another log",
		"side segments are forgotten",
	} {
		t.Run(strings.ReplaceAll(flaw, " ", "-"), func(t *testing.T) {
			for seed := range uint64(20000) {
				if w, err := modelRun(seed, flaw); err != nil {
					t.Logf("seed %d: %v after\n\t%s", seed, err, w.story())
					return
				}
			}
			t.Fatalf("nothing shows when %s", flaw)
		})
	}
}
