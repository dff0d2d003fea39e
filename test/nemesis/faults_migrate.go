package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/test/harness"
)

// Migrations are no harm. What happens to nodes meanwhile may be.
var (
	moveRange = Fault{"keys that move", func(g *game) error {
		return g.arrive(func() ([]uint64, error) {
			id, err := g.migrate()
			return []uint64{id}, err
		})
	}, false}

	moveAndCancel = Fault{"keys that move, and move back half-way", func(g *game) error {
		id, err := g.migrate()
		if err != nil {
			return err
		}
		g.hold(0, 400*time.Millisecond)
		if err := g.cancel(id); err != nil {
			return err
		}
		_, err = g.movesEnd()
		return err
	}, false}

	moveChain = Fault{"keys that move on before they have arrived", func(g *game) error {
		return g.arrive(func() ([]uint64, error) {
			a, b, c := g.three()
			first, err := g.migrateFrom(a, b)
			if err != nil {
				return nil, err
			}
			g.hold(0, 300*time.Millisecond)
			second, err := g.migrateFrom(b, c)
			return []uint64{first, second}, err
		})
	}, false}
)

// arrive has the migrations that begin asks for done. On a machine that stands still for longer than a lease a node is
// taken for dead, and what moved from or to it ends by that: then they are asked for again.
func (g *game) arrive(begin func() ([]uint64, error)) error {
	for try := 1; ; try++ {
		ids, err := begin()
		if err != nil {
			return err
		}
		s, err := g.movesEnd()
		if err != nil {
			return err
		}
		done := true
		for _, id := range ids {
			m := s.Migrations[id]
			if m.Stage == meta.Done {
				continue
			}
			lapsed := strings.Contains(m.Why, "not alive") || strings.Contains(m.Why, "died")
			if !lapsed || try == 3 {
				return fmt.Errorf("migration %d has ended as %s: %s", id, m.Stage, m.Why)
			}
			g.say("migration %d has ended as %s: %s; once more", id, m.Stage, m.Why)
			done = false
		}
		if done {
			return nil
		}
	}
}

// harm happens to nodes while keys move from one to another.
type harm struct {
	name   string
	do     func(g *game, source, target *harness.Node) error
	deadly bool
}

// harmOf is a fault that does not mind what moves.
func harmOf(f Fault) harm {
	return harm{f.Name, func(g *game, _, _ *harness.Node) error { return f.Strike(g) }, f.Deadly}
}

var (
	killSource = harm{"kill -9 of where they come from", func(g *game, source, _ *harness.Node) error {
		source.Kill()
		return errors.Join(g.replaced(source), source.Start())
	}, true}
	killTarget = harm{"kill -9 of where they go", func(g *game, _, target *harness.Node) error {
		target.Kill()
		return errors.Join(g.replaced(target), target.Start())
	}, true}
	killBoth = harm{"kill -9 of both sides", func(g *game, source, target *harness.Node) error {
		first, second := source, target
		if g.rng.IntN(2) == 0 {
			first, second = target, source
		}
		first.Kill()
		g.hold(0, 3*time.Second)
		second.Kill()
		g.hold(0, 2*time.Second)
		return startAll(g, source, target)
	}, true}
	restartSource = harm{"a source that is killed and comes back at once", func(g *game, source, _ *harness.Node) error {
		source.Kill()
		return source.Start()
	}, true}
	restartTarget = harm{"a target that is killed and comes back at once", func(g *game, _, target *harness.Node) error {
		target.Kill()
		return target.Start()
	}, true}
	pauseSource = harm{"SIGSTOP of where they come from", func(g *game, source, _ *harness.Node) error {
		return pauseFor(g, source)
	}, false}
	pauseTarget = harm{"SIGSTOP of where they go", func(g *game, _, target *harness.Node) error {
		return pauseFor(g, target)
	}, false}
)

// pauseFor stops a node for less than a lease, or for longer.
func pauseFor(g *game, n *harness.Node) error {
	if err := n.Pause(); err != nil {
		return err
	}
	g.hold(200*time.Millisecond, 4*time.Second)
	n.Resume()
	return nil
}

// moving does harm in the middle of a migration.
func moving(h harm) Fault {
	return Fault{"keys that move, and " + h.name, func(g *game) error {
		return g.harmMove(h, func(uint64) error { return nil })
	}, h.deadly}
}

// cancelling does harm while a migration is taken back.
func cancelling(h harm) Fault {
	return Fault{"keys that move back, and " + h.name, func(g *game) error {
		return g.harmMove(h, func(id uint64) error {
			err := g.cancel(id)
			g.hold(0, 100*time.Millisecond)
			return err
		})
	}, h.deadly}
}

// harmMove begins a migration, and a little later prepares for harm and does it.
func (g *game) harmMove(h harm, prepare func(id uint64) error) error {
	source, target := g.sides()
	id, err := g.migrateFrom(source, target)
	if err != nil {
		return err
	}
	g.hold(0, 600*time.Millisecond)
	if err := prepare(id); err != nil {
		return err
	}
	if err := h.do(g, source, target); err != nil {
		return err
	}
	_, err = g.movesEnd()
	return err
}

// sides are a node that owns something, and another one.
func (g *game) sides() (source, target *harness.Node) {
	for {
		source, target = g.pair()
		if s, err := g.cluster.Metadata(); err != nil || len(s.Map.Ranges(view.NodeID(source.ID))) > 0 {
			return source, target
		}
	}
}

// three are a node that owns something, and two others.
func (g *game) three() (a, b, c *harness.Node) {
	a, b = g.sides()
	for c = g.victim(); c == a || c == b; {
		c = g.victim()
	}
	return a, b, c
}

func (g *game) migrate() (uint64, error) { return g.migrateFrom(g.sides()) }

// migrateFrom asks for half of what a node owns to go to another. If it owns nothing, as when it is about to get
// something only, the other half of the cluster does.
func (g *game) migrateFrom(source, target *harness.Node) (id uint64, err error) {
	o := moveOptions(g.rng)
	if g.rng.IntN(3) == 0 {
		o.Ownership = meta.OwnershipLate
	}
	return g.migrateWith(source, target, o)
}

func (g *game) migrateWith(source, target *harness.Node, o meta.MigrationOptions) (id uint64, err error) {
	err = harness.Eventually("a migration can be asked for", func() error {
		return g.withMeta(func(ctx context.Context, m *meta.Store) error {
			s, err := m.Read(ctx)
			if err != nil {
				return err
			}
			halves := s.Map.Ranges(view.NodeID(source.ID)).Divide(2)
			made, err := m.Migrate(ctx, meta.MigrationRequest{
				Source: view.NodeID(source.ID), Target: view.NodeID(target.ID), Ranges: halves[g.rng.IntN(2)],
				Options: o,
			})
			id = made.ID
			return err
		})
	})
	if err == nil {
		g.say("half of %s moves to %s, migration %d, %+v", source.ID, target.ID, id, o)
	}
	return id, err
}

// withMeta gives f the cluster's metadata to change, and some seconds to do it.
func (g *game) withMeta(f func(context.Context, *meta.Store) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m, err := g.cluster.Meta(ctx)
	if err != nil {
		return err
	}
	return f(ctx, m)
}

// cancel takes a migration back, unless it has ended.
func (g *game) cancel(id uint64) error {
	return g.withMeta(func(ctx context.Context, m *meta.Store) error {
		err := m.CancelMigration(ctx, id)
		if s, readErr := m.Read(ctx); err != nil && readErr == nil && s.Migrations[id].Stage.Ended() {
			return nil
		}
		return err
	})
}

// movesEnd waits until no migration is under way, nor what it left to others.
func (g *game) movesEnd() (s *meta.Snapshot, err error) {
	err = harness.Eventually("migrations have ended", func() error {
		if err := g.cluster.Crashed(); err != nil {
			return err
		}
		if s, err = g.cluster.Metadata(); err != nil {
			return err
		}
		for _, m := range s.Migrations {
			if !m.Stage.Ended() {
				return fmt.Errorf("%d from %s to %s is %s: %+v", m.ID, m.Source, m.Target, m.Stage, s.Moves[m.ID])
			}
		}
		if n := len(s.Recoveries) + len(s.Returns); n > 0 {
			return fmt.Errorf("%d logs are still replayed", n)
		}
		return nil
	})
	return s, err
}
