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
		return 40
	}
	return 200
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

// death is how a node dies for good.
func death(node string) []string {
	return []string{node + " crashes", "the lease of the dead " + node + " ends", node + " is recovered by one"}
}

// moving is how both keys of a come to be served by b, which has none of them yet.
var moving = []string{"a is asked to give 2 to b", "a moves 1 to b", "a sees", "b sees", "b serves 1"}

// flaws are what nodes could do wrong, each with what it takes to notice. "..." is all that
// happens by itself.
var flaws = map[string][]string{
	"the part of a migration is forgotten": slices.Concat([]string{"a writes key 0"}, moving, death("a")),
	"nothing is left behind": {
		"a writes key 0", "a is asked to give 0 to b", "...", "b deletes key 0", "b cleans",
		"b crashes", "the lease of the dead b ends", "b is recovered", "...",
	},
	"old tombstones are carried on": slices.Concat(
		[]string{"a writes key 0", "a deletes key 0", "a is asked to give 0 to b", "..."}, death("b"),
		[]string{"...", "c writes key 0", "c is asked to give 0 to a", "...", "a cleans and keeps tombstones"}),
	"a return ends at its cut": slices.Concat(moving, []string{
		"b writes key 0", "migration 1 is cancelled", "b sees", "b stops to serve 1", "b returns 1", "b cleans", "a sees", "a replays",
	}),
	"what was sent is not adopted": slices.Concat([]string{"a writes key 0"}, moving, []string{"a sends key 0", "a drops what was sent"}),
	"what was sent is dropped though it came back": slices.Concat([]string{"a writes key 0"}, moving, []string{
		"a sends key 0", "migration 1 is cancelled", "b sees", "b stops to serve 1", "b returns 1", "a sees", "a replays", "a drops what was sent",
		"a copies what it replayed",
	}),
	"a tombstone of what was sent is not kept": slices.Concat([]string{"a writes key 0", "a writes key 0"}, moving, []string{
		"a sends key 0", "a drops what was sent", "b deletes key 0", "b cleans",
		"migration 1 is cancelled", "b sees", "b stops to serve 1", "b returns 1", "a sees", "a replays", "a copies what it replayed",
	}),
	"only what moves is unsettled": slices.Concat([]string{"a writes key 0"}, moving, []string{"b pulls key 0", "b deletes key 0"}, death("a"), []string{
		"plan log 1001", "b crashes", "the lease of the dead b ends", "b joins", "b replays",
	}),
	"serves what it replays": slices.Concat([]string{"a writes key 0", "a deletes key 0"}, moving, death("a"), []string{
		"plan log 1001", "b sees", "b replays half",
	}),
	"answers whatever it is asked": slices.Concat([]string{"a writes key 0"}, moving[:4], death("a"), []string{"a joins", "b serves 1", "b pulls key 0"}),
	"side segments are forgotten": slices.Concat([]string{"a writes key 0"}, moving, []string{"b pulls key 0"}, death("a"), []string{
		"plan log 1001", "b sees", "b replays", "b copies what it replayed",
	}),
	"whoever has asked": slices.Concat(death("b"), []string{
		"...", "a is asked to give 0 to b", "...", "b writes key 0", "b writes key 0", "b is asked to give 0 to a", "...",
		"a is asked to give 0 to b", "b asks for 3", "b crashes and loses its disk", "the lease of the dead b ends", "b joins",
		"a hears who asked and moves 3", "a sees", "b sees", "b serves 3", "b writes key 0",
	}),
	"tombstones go while other logs are needed": slices.Concat([]string{"a writes key 0"}, death("a"), []string{
		"plan log 1001", "c sees", "c replays", "c deletes key 0", "c cleans",
	}),
}

// script does steps by their names.
func (w *modelWorld) script(t *testing.T, names []string) error {
	for _, name := range names {
		if name == "..." {
			if err := w.calm(); err != nil {
				return err
			}
			continue
		}
		all := w.steps()
		i := slices.IndexFunc(all, func(s modelStep) bool { return s.name == name })
		if i < 0 && w.flaw == "" {
			continue // It cannot happen, which is as it should be.
		}
		if i < 0 {
			t.Fatalf("after\n\t%s\nthere is no %q, but %v", w.story(), name, all)
		}
		if err := w.run(all[i]); err != nil {
			return err
		}
	}
	return nil
}

// calm lets nodes do all that they do by themselves.
func (w *modelWorld) calm() error {
	for {
		all := slices.DeleteFunc(w.steps(), func(s modelStep) bool { return s.kind != progress })
		if len(all) == 0 {
			return nil
		}
		if err := w.run(all[0]); err != nil {
			return err
		}
	}
}

func TestTheModelFindsFlaws(t *testing.T) {
	for flaw, names := range flaws {
		t.Run(strings.ReplaceAll(flaw, " ", "-"), func(t *testing.T) {
			if w := newModelWorld(3, ""); w.script(t, names) != nil {
				t.Fatalf("without a flaw: %v after\n\t%s", w.err, w.story())
			}
			w := newModelWorld(3, flaw)
			if w.script(t, names) == nil {
				t.Fatalf("nothing shows after\n\t%s", w.story())
			}
			t.Log(w.err)
		})
	}
}
