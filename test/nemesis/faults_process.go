package nemesis

import (
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// Faults of processes.
var (
	killAndReplace = Fault{"kill -9 of a node, which others replace", func(g *game) error {
		n := g.victim()
		n.Kill()
		g.say("%s was killed", n.ID)
		if err := g.replaced(n); err != nil {
			return err
		}
		g.say("%s was replaced", n.ID)
		return n.Start()
	}, 1}

	killAndRestart = Fault{"kill -9 of a node that comes back at once", func(g *game) error {
		n := g.victim()
		n.Kill()
		g.hold(0, 500*time.Millisecond)
		g.say("%s was killed and comes back", n.ID)
		return n.Start()
	}, 1}

	killTwo = Fault{"kill -9 of a node, and of another one a little later", func(g *game) error {
		a, b := g.pair()
		a.Kill()
		g.hold(0, 4*time.Second)
		b.Kill()
		g.say("%s and %s were killed", a.ID, b.ID)
		g.hold(0, 2*time.Second)
		return startAll(g, a, b)
	}, 2}

	killCoordinator = Fault{"kill -9 of a node, and then of the coordinator that recovers it", func(g *game) error {
		s, err := g.cluster.Metadata()
		if err != nil {
			return err
		}
		coordinator, other := g.cluster.Node(s.Coordinator), g.victim()
		if coordinator == nil || coordinator == other {
			return killAndReplace.Strike(g)
		}
		other.Kill()
		g.hold(1500*time.Millisecond, 4*time.Second)
		coordinator.Kill()
		g.say("%s and then the coordinator %s were killed", other.ID, coordinator.ID)
		g.hold(0, 2*time.Second)
		return startAll(g, coordinator, other)
	}, 2}

	killAll = Fault{"kill -9 of all nodes at once", func(g *game) error {
		return killEverything(g, false)
	}, 4}

	killAllAndEtcd = Fault{"kill -9 of all nodes and of etcd at once", func(g *game) error {
		return killEverything(g, true)
	}, 5}

	loseOne = Fault{"a node lost for good with its disk", func(g *game) error {
		n := g.victim()
		n.Kill()
		if err := forget(n); err != nil {
			return err
		}
		g.say("%s was killed and lost all it had", n.ID)
		if err := g.replaced(n); err != nil {
			return err
		}
		return n.Start()
	}, 1}

	pause = Fault{"SIGSTOP of a node until others have replaced it", func(g *game) error {
		n := g.victim()
		if err := n.Pause(); err != nil {
			return err
		}
		g.say("%s is stopped", n.ID)
		err := g.replaced(n)
		g.hold(0, 500*time.Millisecond)
		n.Resume()
		g.say("%s goes on", n.ID)
		return err
	}, 0}

	pauseBriefly = Fault{"SIGSTOP of a node for about as long as its lease", func(g *game) error {
		n := g.victim()
		if err := n.Pause(); err != nil {
			return err
		}
		g.hold(500*time.Millisecond, 2500*time.Millisecond)
		n.Resume()
		return nil
	}, 0}

	pauseEtcd = Fault{"SIGSTOP of etcd for about as long as a lease", func(g *game) error {
		if err := g.cluster.Etcd.Pause(); err != nil {
			return err
		}
		g.hold(500*time.Millisecond, 3*time.Second)
		g.cluster.Etcd.Resume()
		return nil
	}, 0}

	restart = Fault{"SIGTERM of a node, which then comes back", func(g *game) error {
		n := g.victim()
		if err := n.Terminate(); err != nil {
			return err
		}
		g.say("%s has ended in good order", n.ID)
		g.hold(0, 4*time.Second)
		return n.Start()
	}, 0}
)

// killEverything kills all nodes, and etcd if it shall be so, and starts them in random order.
func killEverything(g *game, etcd bool) error {
	for _, n := range g.cluster.Nodes {
		n.Kill()
	}
	if etcd {
		g.cluster.Etcd.Kill()
		if err := g.cluster.StartEtcd(); err != nil {
			return err
		}
	}
	g.say("all were killed")
	return startAll(g, g.cluster.Nodes...)
}

// startAll starts nodes in random order with pauses in between.
func startAll(g *game, nodes ...*harness.Node) error {
	for _, i := range g.rng.Perm(len(nodes)) {
		g.hold(0, 500*time.Millisecond)
		if err := nodes[i].Start(); err != nil {
			return err
		}
	}
	return nil
}
