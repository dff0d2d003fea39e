package nemesis

import (
	"errors"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// Faults of the network, for clusters of several machines.
var (
	cutFromEtcd = Fault{"a node that etcd does not hear", func(g *game) error {
		n := g.victim()
		return g.cut(fromEtcd([]*harness.Node{n}), func() error {
			g.say("%s is cut off from etcd", n.ID)
			return g.replaced(n)
		})
	}, false}

	deafToEtcd = Fault{"a node that does not hear etcd", func(g *game) error {
		n := g.victim()
		return g.cut(func(net *harness.Network) error { return net.Cut(harness.TheEtcd, n.ID) }, func() error {
			g.say("%s does not hear etcd", n.ID)
			return g.replaced(n)
		})
	}, false}

	cutFromClients = Fault{"a node that clients cannot reach", func(g *game) error {
		n := g.victim()
		return g.cut(func(net *harness.Network) error { return net.CutBoth(n.ID, harness.TheTest) }, func() error {
			g.say("%s is cut off from clients", n.ID)
			g.hold(time.Second, 4*time.Second)
			return nil
		})
	}, false}

	muteToClients = Fault{"a node whose answers are lost", func(g *game) error {
		n := g.victim()
		return g.cut(func(net *harness.Network) error { return net.Cut(n.ID, harness.TheTest) }, func() error {
			g.say("answers of %s are lost", n.ID)
			g.hold(time.Second, 4*time.Second)
			return nil
		})
	}, false}

	cutFromPeer = Fault{"two nodes that do not hear each other", func(g *game) error {
		a, b := g.pair()
		return g.cut(fromEachOther(a, b), func() error {
			g.say("%s and %s are cut off from each other", a.ID, b.ID)
			return g.writable()
		})
	}, false}

	deafToPeer = Fault{"a node that does not hear another one", func(g *game) error {
		a, b := g.pair()
		return g.cut(func(net *harness.Network) error { return net.Cut(a.ID, b.ID) }, func() error {
			g.say("%s does not hear %s", b.ID, a.ID)
			return g.writable()
		})
	}, false}

	isolate = Fault{"a node that is cut off from all others", func(g *game) error {
		n := g.victim()
		return g.cut(g.apart([]*harness.Node{n}), func() error {
			g.say("%s is cut off from all but clients", n.ID)
			return g.replaced(n)
		})
	}, false}
)

// cut holds cuts while something happens, and heals them in any case.
func (g *game) cut(how func(*harness.Network) error, meanwhile func() error) error {
	err := how(g.cluster.Net)
	if err == nil {
		err = meanwhile()
	}
	g.say("the network is whole again")
	return errors.Join(err, g.cluster.Net.Heal())
}
