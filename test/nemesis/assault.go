package nemesis

import (
	"errors"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// assault is what a blow does to nodes. When it returns they run, and hear each other.
type assault func(g *game, victims []*harness.Node) error

// assaults are those on processes, severances those on networks, and shortages those of disks.
var (
	assaults = map[string]assault{
		"killed and replaced": func(g *game, victims []*harness.Node) error {
			for _, n := range victims {
				n.Kill()
			}
			return errors.Join(g.allReplaced(victims), startAll(g, victims...))
		},
		"killed and restarted": func(g *game, victims []*harness.Node) error {
			for _, n := range victims {
				n.Kill()
			}
			return startAll(g, victims...)
		},
		"stopped and replaced": func(g *game, victims []*harness.Node) error {
			return g.stopped(victims, func() error { return g.allReplaced(victims) })
		},
		"stopped for a while": func(g *game, victims []*harness.Node) error {
			return g.stopped(victims, func() error { g.hold(100*time.Millisecond, 3*time.Second); return nil })
		},
	}
	severances = map[string]assault{
		"cut off and replaced": func(g *game, victims []*harness.Node) error {
			return g.cut(g.apart(victims), func() error { return g.allReplaced(victims) })
		},
		"cut off from etcd alone and replaced": func(g *game, victims []*harness.Node) error {
			return g.cut(fromEtcd(victims), func() error { return g.allReplaced(victims) })
		},
		"cut off for a while": func(g *game, victims []*harness.Node) error {
			return g.cut(g.apart(victims), func() error { g.hold(100*time.Millisecond, 3*time.Second); return nil })
		},
	}
	shortages = map[string]assault{
		"out of disk for a while": func(g *game, victims []*harness.Node) error {
			return g.outOfDisk(victims, func() { g.hold(100*time.Millisecond, 3*time.Second) })
		},
	}
)

// outages are of etcd, for less than a lease or for longer. Each is called as what befalls nodes.
var outages = map[string]func(*game) error{
	"killed and restarted": func(g *game) error {
		g.cluster.Etcd.Kill()
		g.etcdIsAway()
		return g.cluster.StartEtcd()
	},
	"stopped for a while": func(g *game) error {
		if err := g.cluster.Etcd.Pause(); err != nil {
			return err
		}
		g.etcdIsAway()
		g.cluster.Etcd.Resume()
		return nil
	},
	"cut off for a while": func(g *game) error {
		return g.cut(fromEtcd(g.cluster.Nodes), func() error { g.etcdIsAway(); return nil })
	},
}

// rifts are between a migration's nodes, which both live: all others hear them, and their leases go on.
var rifts = map[string]func(g *game, source, target *harness.Node) error{
	"cut off for a while": func(g *game, source, target *harness.Node) error {
		return g.cut(fromEachOther(source, target), func() error { g.hold(100*time.Millisecond, 3*time.Second); return nil })
	},
	"cut off until all is over": func(g *game, source, target *harness.Node) error {
		return g.cut(fromEachOther(source, target), func() error {
			g.release() // Who halts does not end anything.
			_, err := g.movesEnd()
			return err
		})
	},
	"cut off in one direction": func(g *game, source, target *harness.Node) error {
		if g.rng.IntN(2) == 0 {
			source, target = target, source
		}
		g.say("%s does not hear %s", target.ID, source.ID)
		return g.cut(func(net *harness.Network) error { return net.Cut(source.ID, target.ID) }, func() error { g.hold(100*time.Millisecond, 20*time.Second); return nil })
	},
}

// etcdIsAway passes the time meanwhile: leases end or do not.
func (g *game) etcdIsAway() { g.hold(100*time.Millisecond, 5*time.Second) }

// fromEtcd cuts nodes off from etcd alone.
func fromEtcd(nodes []*harness.Node) func(*harness.Network) error {
	return func(net *harness.Network) error {
		var errs []error
		for _, n := range nodes {
			errs = append(errs, net.CutBoth(n.ID, harness.TheEtcd))
		}
		return errors.Join(errs...)
	}
}

// fromEachOther cuts the link between two nodes.
func fromEachOther(a, b *harness.Node) func(*harness.Network) error {
	return func(net *harness.Network) error { return net.CutBoth(a.ID, b.ID) }
}

// apart cuts nodes off from etcd and from all other nodes. Clients still reach them.
func (g *game) apart(victims []*harness.Node) func(*harness.Network) error {
	return func(net *harness.Network) error {
		var errs []error
		for _, n := range victims {
			errs = append(errs, net.CutBoth(n.ID, harness.TheEtcd))
			for _, other := range g.cluster.Nodes {
				if other != n {
					errs = append(errs, net.CutBoth(n.ID, other.ID))
				}
			}
		}
		return errors.Join(errs...)
	}
}

// stopped holds nodes by SIGSTOP while something happens.
func (g *game) stopped(victims []*harness.Node, meanwhile func() error) error {
	var err error
	for _, n := range victims {
		err = errors.Join(err, n.Pause())
	}
	if err == nil {
		err = meanwhile()
	}
	for _, n := range victims {
		n.Resume()
	}
	return err
}

// outOfDisk fills the disks of nodes while something happens.
func (g *game) outOfDisk(victims []*harness.Node, meanwhile func()) (err error) {
	for _, n := range victims {
		remove, fails := fill(n)
		if fails != nil {
			return errors.Join(err, fails)
		}
		defer func() { err = errors.Join(err, remove()) }()
	}
	meanwhile()
	return nil
}

func (g *game) allReplaced(victims []*harness.Node) error {
	for _, n := range victims {
		if err := g.replaced(n); err != nil {
			return err
		}
	}
	return nil
}
