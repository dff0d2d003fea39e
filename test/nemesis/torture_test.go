package nemesis

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/test/harness"
)

var (
	killsFlag = flag.Int("kills", int(setting("OSTRO_TORTURE_KILLS", 0)), "the long form: go on until so many processes were killed")
	onlyFlag  = flag.String("only", "", "of the long form: only faults whose names contain this")
)

// perCluster is how many rounds a cluster lives before a new one takes its place.
const perCluster = 25

func TestTortureOfProcesses(t *testing.T) {
	seed := tortureSeed(t)
	torture(t, seed, *killsFlag/2, func(n int) harness.ClusterOptions {
		o := harness.ClusterOptions{Binary: binary, Nodes: 4 + n%3, Fabric: []string{"shm", "tcp"}[n%2]}
		if n%4 == 3 {
			o.Replication = "rpc"
		}
		if n%3 != 2 {
			o.Args = smallSegments
		}
		return o
	}, []Fault{
		killAndReplace, killAndReplace, killAndRestart, killTwo, killCoordinator, killAll, killAllAndEtcd, loseOne, loseAndRestart, loseTwo,
		pause, pauseBriefly, pauseEtcd, restart, corruptReplicas,
	})
}

func TestTortureOfMigrations(t *testing.T) {
	seed := tortureSeed(t)
	torture(t, seed, *killsFlag/2, func(n int) harness.ClusterOptions {
		o := harness.ClusterOptions{Binary: binary, Nodes: 4, Fabric: []string{"shm", "tcp"}[n%2], Args: [][]string{slowMoves, smallSegments}[n/2%2]}
		return varied(t, rand.New(rand.NewPCG(seed+uint64(n), 5)), o)
	}, []Fault{
		moveRange, moveAndCancel, moveChain, moving(killSource), moving(killTarget), moving(killSource), moving(killTarget), moving(killBoth),
		moving(restartSource), moving(restartTarget), moving(pauseSource), moving(pauseTarget), moving(harmOf(pauseEtcd)),
		moving(harmOf(killCoordinator)), moving(harmOf(killAll)), cancelling(killSource), cancelling(killTarget), killAndReplace,
	})
}

func TestTortureOfNetworksAndDisks(t *testing.T) {
	seed := tortureSeed(t)
	if !isolated(t, seed) {
		return
	}
	torture(t, seed, *killsFlag/2, func(int) harness.ClusterOptions {
		return harness.ClusterOptions{Binary: binary, Nodes: 4, Machines: true, DiskBytes: smallDiskBytes, Args: smallSegments}
	}, []Fault{
		cutFromEtcd, deafToEtcd, cutFromClients, muteToClients, cutFromPeer, deafToPeer, isolate,
		fillDisk, fillDiskAndKill, killAndReplace, killAndReplace, killTwo, killAll, corruptReplicas, pause,
	})
}

func tortureSeed(t *testing.T) uint64 {
	if *killsFlag == 0 {
		t.Skip("the long form: make torture-cluster KILLS=300")
	}
	return seedOf(t)
}

// torture plays random faults until enough processes were killed, on one cluster after another. If
// the chosen faults kill nobody, it plays so many rounds.
func torture(t *testing.T, seed uint64, kills int, options func(int) harness.ClusterOptions, faults []Fault) {
	faults = chosen(t, faults)
	killed, rounds := 0, 0
	deadly := slices.ContainsFunc(faults, func(f Fault) bool { return f.Deadly })
	enough := func() bool { return killed >= kills || !deadly && rounds >= kills }
	for n := 0; !enough(); n++ {
		t.Run("cluster", func(t *testing.T) {
			g := newGame(t, seed+uint64(n), options(n))
			for i := 0; i < perCluster && !enough(); i++ {
				f := faults[g.rng.IntN(len(faults))]
				before := g.cluster.Kills()
				g.play(f)
				killed += g.cluster.Kills() - before
				rounds++
			}
		})
		if t.Failed() {
			t.Fatalf("after %d rounds of seed %d", rounds, seed)
		}
	}
	t.Logf("%d rounds, %d processes killed, seed %d", rounds, killed, seed)
}

func chosen(t *testing.T, faults []Fault) (some []Fault) {
	for _, f := range faults {
		if strings.Contains(f.Name, *onlyFlag) {
			some = append(some, f)
		}
	}
	if len(some) == 0 {
		t.Skipf("no fault is called %q", *onlyFlag)
	}
	return some
}
