package nemesis

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
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
	}, true}

	killAndRestart = Fault{"kill -9 of a node that comes back at once", func(g *game) error {
		n := g.victim()
		n.Kill()
		g.hold(0, 500*time.Millisecond)
		g.say("%s was killed and comes back", n.ID)
		return n.Start()
	}, true}

	killTwo = Fault{"kill -9 of a node, and of another one a little later", func(g *game) error {
		a, b := g.pair()
		a.Kill()
		g.hold(0, 4*time.Second)
		b.Kill()
		g.say("%s and %s were killed", a.ID, b.ID)
		g.hold(0, 2*time.Second)
		return startAll(g, a, b)
	}, true}

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
	}, true}

	killAll = Fault{"kill -9 of all nodes at once", func(g *game) error {
		return killEverything(g, false)
	}, true}

	killAllAndEtcd = Fault{"kill -9 of all nodes and of etcd at once", func(g *game) error {
		return killEverything(g, true)
	}, true}

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
	}, true}

	// It has the name of who owns something and nothing of what that had: it must not serve.
	loseAndRestart = Fault{"a node that lost its disk and comes back at once", func(g *game) error {
		n := g.victim()
		before, err := g.cluster.Metadata()
		if err != nil {
			return err
		}
		n.Kill()
		if err := forget(n); err != nil {
			return err
		}
		g.say("%s was killed, lost all it had, and comes back", n.ID)
		return errors.Join(n.Start(), g.begunAnew(n, before))
	}, true}

	// Of three copies two losses leave one: nobody needs to be told anything. The operator forgets
	// the lost ones before others come in their places, or not.
	loseTwo = Fault{"two nodes lost for good with their disks, at once", func(g *game) error {
		a, b := g.pair()
		a.Kill()
		b.Kill()
		if err := errors.Join(forget(a), forget(b)); err != nil {
			return err
		}
		g.say("%s and %s were killed and lost all they had", a.ID, b.ID)
		if err := errors.Join(g.replaced(a), g.replaced(b)); err != nil {
			return err
		}
		g.say("they were replaced")
		if g.rng.IntN(2) == 0 {
			if err := g.giveUp(a, b); err != nil {
				return err
			}
		}
		return startAll(g, a, b)
	}, true}

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
	}, false}

	pauseBriefly = Fault{"SIGSTOP of a node for about as long as its lease", func(g *game) error {
		n := g.victim()
		if err := n.Pause(); err != nil {
			return err
		}
		g.hold(500*time.Millisecond, 2500*time.Millisecond)
		n.Resume()
		return nil
	}, false}

	pauseEtcd = Fault{"SIGSTOP of etcd for about as long as a lease", func(g *game) error {
		if err := g.cluster.Etcd.Pause(); err != nil {
			return err
		}
		g.hold(500*time.Millisecond, 3*time.Second)
		g.cluster.Etcd.Resume()
		return nil
	}, false}

	restart = Fault{"SIGTERM of a node, which then comes back", func(g *game) error {
		n := g.victim()
		if err := n.Terminate(); err != nil {
			return err
		}
		g.say("%s has ended in good order", n.ID)
		g.hold(0, 4*time.Second)
		return n.Start()
	}, false}
)

// begunAnew waits until a node has joined with another log than it had.
func (g *game) begunAnew(n *harness.Node, before *meta.Snapshot) error {
	return harness.Eventually(n.ID+" has a new log", func() error {
		s, err := g.cluster.Metadata()
		id := view.NodeID(n.ID)
		if err == nil && (!s.IsAlive(id) || s.Nodes[id].Log == before.Nodes[id].Log) {
			err = cmp.Or(g.cluster.Crashed(), fmt.Errorf("alive: %v, it owns %v: %+v", s.IsAlive(id), s.Map.Ranges(id), s.Progress))
		}
		return err
	})
}

// giveUp says of nodes that they never come back, as an operator would.
func (g *game) giveUp(nodes ...*harness.Node) error {
	for _, n := range nodes {
		out, err := g.cluster.Command("cluster", "remove", n.ID, "--lost")
		if err != nil {
			return err
		}
		g.say("%s", out)
	}
	return nil
}

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
