package nemesis

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/ostrodb/ostro/test/harness"
)

var (
	roundsFlag = flag.Int("rounds", int(setting("OSTRO_TORTURE_ROUNDS", 0)), "the long form: so many blows to migrations that halt at a step")
	fromFlag   = flag.Int("from", 0, "of the long form: leave out so many blows of the seed's order, as they were struck before")
)

// stepsPerCluster is how many blows a cluster gets before another one takes its place, with other settings.
const stepsPerCluster = 8

// newStepGame is a game whose migrations can be halted at any step.
func newStepGame(t *testing.T, seed uint64, o harness.ClusterOptions) *game {
	t.Helper()
	halts := t.TempDir()
	o.Args = append(slices.Clone(o.Args), "--migrate-halt-dir", halts)
	g := newGame(t, seed, varied(t, rand.New(rand.NewPCG(seed, 5)), o))
	g.halts = halts
	return g
}

// Four blows of all, others each time.
func TestAMigrationThatIsHitAtANamedStepLosesNothing(t *testing.T) {
	seed := seedOf(t)
	g := newStepGame(t, seed, harness.ClusterOptions{Binary: binary, Nodes: 4, Fabric: "shm", Args: smallSegments})
	for _, b := range blows(g.rng, false)[:4] {
		g.play(b.fault())
	}
}

func TestAMigrationThatIsCutOffOrHasNoDiskAtANamedStepLosesNothing(t *testing.T) {
	seed := seedOf(t)
	if !isolated(t, seed) {
		return
	}
	g := newStepGame(t, seed, harness.ClusterOptions{Binary: binary, Nodes: 4, Machines: true, DiskBytes: smallDiskBytes, Args: smallSegments})
	all := blows(g.rng, true)
	for _, kind := range []func(blow) bool{
		func(b blow) bool { return b.side != theLink && severances[b.how] != nil },
		func(b blow) bool { return b.side == theLink },
		func(b blow) bool { return shortages[b.how] != nil },
	} {
		i := slices.IndexFunc(all, kind)
		g.play(all[i].fault())
		all = all[i+1:]
	}
}

// TestTortureOfSteps strikes every blow once before any is struck again.
func TestTortureOfSteps(t *testing.T) {
	if *roundsFlag == 0 {
		t.Skip("the long form: make torture-steps")
	}
	seed := seedOf(t)
	if !isolated(t, seed) {
		return
	}
	all := slices.DeleteFunc(blows(rand.New(rand.NewPCG(seed, 11)), true), func(b blow) bool { return !strings.Contains(b.String(), *onlyFlag) })
	if len(all) == 0 {
		t.Skipf("no blow is called %q", *onlyFlag)
	}
	struck := map[blow]int{}
	defer func() { t.Logf("seed %d\n%s", seed, tableOf(struck)) }()
	for round, end := *fromFlag, *fromFlag+*roundsFlag; round < end; {
		t.Run("cluster", func(t *testing.T) {
			o := harness.ClusterOptions{Binary: binary, Nodes: 4, Machines: true, DiskBytes: smallDiskBytes, Args: [][]string{slowMoves, smallSegments}[round/stepsPerCluster%2]}
			g := newStepGame(t, seed+uint64(round), o)
			for i := 0; i < stepsPerCluster && round < end; i++ {
				b := all[round%len(all)]
				g.play(b.fault())
				struck[b]++
				round++
			}
		})
		if t.Failed() {
			t.Fatalf("after %d rounds of seed %d", round, seed)
		}
	}
}

// tableOf shows how often each step was hit in which way: source, target, both, coordinator, etcd, the link between both.
func tableOf(struck map[blow]int) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	var ways []string
	for b := range struck {
		if !slices.Contains(ways, b.how) {
			ways = append(ways, b.how)
		}
	}
	slices.Sort(ways)
	fmt.Fprintf(w, "step\t%s\n", strings.Join(ways, "\t"))
	total := 0
	for _, step := range allSteps {
		fmt.Fprint(w, step)
		for _, how := range ways {
			var cells []string
			for _, side := range blowSides {
				n := struck[blow{step, how, side}]
				total += n
				cells = append(cells, fmt.Sprint(n))
			}
			fmt.Fprintf(w, "\t%s", strings.Join(cells, " "))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return fmt.Sprintf("%d runs; in each column: source, target, both sides, coordinator, etcd, the link between both\n%s", total, text.String())
}
