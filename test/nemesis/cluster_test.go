package nemesis

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/test/harness"
)

// smallDiskBytes is room for a node's log and what it keeps of others', and not for much more.
const smallDiskBytes = 1 << 30

// smallSegments make segments fill, close and be cleaned all the time.
var smallSegments = []string{"--segment-size", "256KiB"}

// slowMoves let a migration take some time, so that something can happen to it.
var slowMoves = append([]string{"--migrate-rate", "1MiB", "--migrate-pull-bytes", "4KiB"}, smallSegments...)

// The short form: each kind of harm once or twice, in a random order.

func TestAClusterWhoseProcessesAreKilledAndStoppedExplainsAllItsAnswers(t *testing.T) {
	g := newGame(t, seedOf(t), harness.ClusterOptions{Binary: binary, Nodes: 4, Fabric: "shm", Args: smallSegments})
	g.playAll(killAndReplace, pause, killAll, loseOne, pauseEtcd, corruptReplicas)
	if g.spoiled == 0 {
		t.Error("there were no closed replicas to be changed: that round has shown nothing")
	}
}

func TestAClusterThatLosesTwoOfFiveDisksAtOnceLosesNothing(t *testing.T) {
	g := newGame(t, seedOf(t), harness.ClusterOptions{Binary: binary, Nodes: 5, Args: smallSegments})
	g.playAll(loseTwo)
}

// Nodes are told of etcd as an operator tells them: etcd://user@host/name?ca=...&cert=...&key=...&password-file=...
func TestAClusterOnAnEtcdWithTLSAndPasswordsLosesNothing(t *testing.T) {
	g := newGame(t, seedOf(t), harness.ClusterOptions{Binary: binary, Nodes: 3, Secure: true, Args: smallSegments})
	g.playAll(killAndReplace, killAllAndEtcd)
	out, err := g.cluster.Command("cluster", "status")
	if err != nil || !strings.Contains(out, "ok") {
		t.Fatalf("status says: %v\n%s", err, out)
	}
	_, open, _ := strings.Cut(g.cluster.URL(), "@")
	open, _, _ = strings.Cut(open, "?")
	cmd := exec.Command(binary, "cluster", "status", "--cluster", "etcd://"+open)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "TLS") {
		t.Fatalf("without certificate and password status says: %v\n%s", err, out)
	}
}

func TestAClusterWhoseKeysMoveWhileNodesDieExplainsAllItsAnswers(t *testing.T) {
	seed := seedOf(t)
	g := newGame(t, seed, varied(t, rand.New(rand.NewPCG(seed, 5)), harness.ClusterOptions{Binary: binary, Nodes: 4, Fabric: "shm", Args: slowMoves}))
	g.playAll(moveRange, moveAndCancel, moveChain, moving(killSource), moving(killTarget))
}

func TestAClusterWhoseNetworkIsCutExplainsAllItsAnswers(t *testing.T) {
	seed := seedOf(t)
	if !isolated(t, seed) {
		return
	}
	g := newGame(t, seed, harness.ClusterOptions{Binary: binary, Nodes: 4, Machines: true, DiskBytes: smallDiskBytes, Args: smallSegments})
	g.playAll(cutFromEtcd, deafToPeer, muteToClients, fillDisk)
}
