package nemesis

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/test/harness"
)

// game is a cluster under load that a nemesis torments.
type game struct {
	t       *testing.T
	rng     *rand.Rand
	cluster *harness.Cluster
	load    *Load
	round   uint64
	seed    uint64
	began   time.Time
	logged  map[string]int64 // bytes, by node
	plain   bool             // all nodes forward, for clients that know nothing of clusters
	spoiled int              // replicas that were changed on disk
	halts   string           // where files say at which steps migrations halt
}

// Fault does harm and undoes it: when it returns, processes run, the network is whole and
// disks have room. What the cluster makes of that takes longer.
type Fault struct {
	Name   string
	Strike func(*game) error
	// Deadly: it kills processes.
	Deadly bool
}

func newGame(t *testing.T, seed uint64, o harness.ClusterOptions) *game {
	t.Helper()
	return &game{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), seed: seed, began: time.Now(), logged: map[string]int64{},
		plain: slices.Contains(o.Args, forwarding), cluster: harness.StartCluster(t, o),
	}
}

// Answers that clients get before and after a fault. Bulk writes are about 1 KB each.
const (
	answersBefore = 150
	writesBefore  = 2000
	answersAfter  = 100
)

// contenders is how many clients of the native protocol there are beside those of RESP.
const contenders = 2

// play is one round: load, a fault, and the questions whether all answers make sense and every addition counts once.
func (g *game) play(f Fault) {
	g.t.Helper()
	g.round++
	g.say("round %d: %s", g.round, f.Name)
	sum, err := g.startTally()
	g.must("begin to count", err)
	defer sum.close()
	g.load = StartLoad(LoadOptions{Seed: g.seed<<16 + g.round, Addrs: g.cluster.Addrs(), Plain: g.plain, Clients: 6, Bulks: 1, Hoards: 1, Width: 2})
	g.load.Contend(sum.c, contenders)
	stopped := false
	defer func() {
		if !stopped {
			g.load.Stop()
		}
	}()
	g.must("get answers before the fault", g.answers(answersBefore))
	g.must("write much before the fault", g.writes(writesBefore))
	g.must("keep a hoard before the fault", g.hoarded())
	g.must(f.Name, f.Strike(g))
	g.must("get answers after "+f.Name, g.answers(answersAfter))
	g.load.Stop()
	stopped = true
	g.must("be healthy after "+f.Name, g.cluster.WaitHealthy())
	if err := g.load.Check(); err != nil {
		g.t.Fatalf("after %s: %v", f.Name, err)
	}
	n, err := sum.check()
	g.must("count additions once after "+f.Name, err)
	g.must("log with measure", g.chatter())
	g.say("round %d: %s; %d additions count once; %s", g.round, g.load, n, g.moved())
}

// moved tells how much migrations brought so far, and how much of that as word of cold records.
func (g *game) moved() string {
	s, err := g.cluster.Metadata()
	if err != nil {
		return err.Error()
	}
	var cold, all int64
	for _, m := range s.Migrations {
		cold, all = cold+m.Cold, all+m.Records
	}
	return fmt.Sprintf("%d records were moved, %d known of first", all, cold)
}

// mostLogged is how much a node may log in one round: who says more goes round in circles.
const mostLogged = 4 << 20

// chatter finds nodes that do.
func (g *game) chatter() error {
	for _, n := range g.cluster.Nodes {
		before := g.logged[n.ID]
		if g.logged[n.ID] = n.LogBytes(); g.logged[n.ID]-before > mostLogged {
			return fmt.Errorf("%s logged %d MB in one round:\n%s", n.ID, (g.logged[n.ID]-before)>>20, n.Tail(20))
		}
	}
	return nil
}

func (g *game) say(format string, args ...any) {
	g.t.Logf("%7.3f s  %s", time.Since(g.began).Seconds(), fmt.Sprintf(format, args...))
}

func (g *game) must(what string, err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatalf("%7.3f s  round %d: %s: %v", time.Since(g.began).Seconds(), g.round, what, err)
	}
}

// answers waits until clients got some more.
func (g *game) answers(more int) error {
	enough := g.load.Answers() + more
	return harness.Eventually("clients get answers", func() error {
		if got := g.load.Answers(); got < enough {
			return cmp.Or(g.cluster.Crashed(), g.load.Odd(), fmt.Errorf("they got %d of %d", got, enough))
		}
		return nil
	})
}

// writes waits until bulk writers got some answers.
func (g *game) writes(enough int) error {
	return harness.Eventually("bulk writers get answers", func() error {
		if got := g.load.Writes(); got < enough {
			return cmp.Or(g.cluster.Crashed(), g.load.Odd(), fmt.Errorf("they got %d of %d", got, enough))
		}
		return nil
	})
}

// hoarded waits until hoards are complete.
func (g *game) hoarded() error {
	return harness.Eventually("hoards are complete", func() error {
		if !g.load.Hoarded() {
			return cmp.Or(g.cluster.Crashed(), g.load.Odd(), errors.New("something is missing"))
		}
		return nil
	})
}

// probes is how many keys tell whether all nodes take writes: every node has some of them.
const probes = 48

// writable waits until keys of all nodes can be written, several times each.
func (g *game) writable() error {
	r := NewRouter(g.seed+g.round, harness.Patience, g.cluster.Addrs()...)
	defer r.Close()
	for range 3 {
		for n := range probes {
			key := fmt.Sprint("probe:", n)
			fate := Lost
			for end := time.Now().Add(harness.Patience); fate != Answered; {
				if _, fate = r.Do(key, []string{"SET", key, "x"}); fate != Answered && (r.Odd != "" || time.Now().After(end)) {
					return cmp.Or(g.cluster.Crashed(), fmt.Errorf("%s cannot be written within %s: %s %v", key, harness.Patience, r.Odd, r.Refusals))
				}
			}
		}
	}
	return nil
}

// victim is a random node.
func (g *game) victim() *harness.Node { return g.cluster.Nodes[g.rng.IntN(len(g.cluster.Nodes))] }

// pair is two of them.
func (g *game) pair() (a, b *harness.Node) {
	order := g.rng.Perm(len(g.cluster.Nodes))
	return g.cluster.Nodes[order[0]], g.cluster.Nodes[order[1]]
}

// hold lets a fault last for a while.
func (g *game) hold(least, most time.Duration) {
	time.Sleep(least + time.Duration(g.rng.Int64N(int64(most-least)+1)))
}

// replaced waits until a node counts as dead and others serve what it had.
func (g *game) replaced(n *harness.Node) error {
	return harness.Eventually(n.ID+" is replaced", func() error {
		if err := g.cluster.Crashed(); err != nil {
			return err
		}
		s, err := g.cluster.Metadata()
		switch {
		case err != nil:
			return err
		case s.IsAlive(view.NodeID(n.ID)):
			return fmt.Errorf("it is alive")
		case len(s.Map.Ranges(view.NodeID(n.ID))) > 0:
			return fmt.Errorf("it owns something: %+v", s.Progress[s.Nodes[view.NodeID(n.ID)].Log])
		case len(s.Recoveries) > 0:
			return fmt.Errorf("recoveries go on: %+v", s.Progress)
		}
		return nil
	})
}

// forget empties a node's directory: it is lost for good.
func forget(n *harness.Node) error { return os.RemoveAll(n.Dir + "/data") }

// playAll plays a round with each fault, in random order.
func (g *game) playAll(faults ...Fault) {
	g.t.Helper()
	for _, i := range g.rng.Perm(len(faults)) {
		g.play(faults[i])
	}
}
