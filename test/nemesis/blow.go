package nemesis

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/test/harness"
)

// blow is harm to a migration that has come to a named step and halts there.
type blow struct {
	step migrate.Step
	how  string
	side string
}

func (b blow) String() string { return fmt.Sprintf("%s: %s is %s", b.step, b.side, b.how) }

// allSteps are those that a migration can be halted at.
var allSteps = slices.Concat(migrate.Steps, migrate.SourceSteps, migrate.ReturnSteps, lateSteps)

// lateSteps are those that only late ownership has.
var lateSteps = []migrate.Step{migrate.CopyingSome, migrate.CopiedAll, migrate.Closed}

// Whom a blow hits.
const (
	theSource      = "the source"
	theTarget      = "the target"
	theBoth        = "each side"
	theCoordinator = "the coordinator"
	theEtcd        = "etcd"
	theLink        = "the link between them"
)

var blowSides = []string{theSource, theTarget, theBoth, theCoordinator, theEtcd, theLink}

// blows are all that can be, in some order. Those of networks and disks need machines.
func blows(rng *rand.Rand, machines bool) (all []blow) {
	for _, step := range allSteps {
		for _, side := range blowSides {
			for _, how := range waysToHit(side, machines) {
				all = append(all, blow{step, how, side})
			}
		}
	}
	slices.SortFunc(all, func(a, b blow) int { return cmp.Compare(a.String(), b.String()) }) // Maps have no order.
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// waysToHit are those that a side can be hit in. Nobody replaces etcd.
func waysToHit(side string, machines bool) (ways []string) {
	switch side {
	case theEtcd:
		ways = slices.Collect(maps.Keys(outages))
	case theLink:
		ways = slices.Collect(maps.Keys(rifts))
	default:
		ways = slices.AppendSeq(slices.AppendSeq(slices.Collect(maps.Keys(assaults)), maps.Keys(severances)), maps.Keys(shortages))
	}
	return slices.DeleteFunc(ways, func(how string) bool { return !machines && needsMachines(how) })
}

// needsMachines tells whether it is networks or disks that are harmed.
func needsMachines(how string) bool {
	return severances[how] != nil || shortages[how] != nil || rifts[how] != nil
}

// fault begins a migration, waits until it halts at the blow's step, and strikes. In half of the cases the migration may
// go on, as far as it can, while the harm lasts.
func (b blow) fault() Fault {
	return Fault{b.String(), func(g *game) error {
		defer g.release()
		source, target, err := g.haltSome(b.step)
		if err != nil {
			return err
		}
		hit, err := b.prepare(g, source, target)
		if err != nil {
			return err
		}
		// Who halts before it replays has others wait who replace a dead node: both may have had the same places.
		if g.rng.IntN(2) == 0 || b.step == migrate.Replaying {
			timer := time.AfterFunc(time.Duration(g.rng.Int64N(int64(2*time.Second))), g.release)
			defer timer.Stop()
		}
		if err := hit(); err != nil {
			return err
		}
		g.release()
		_, err = g.movesEnd()
		return err
	}, true}
}

// prepare finds whom it hits, and returns how to.
func (b blow) prepare(g *game, source, target *harness.Node) (hit func() error, err error) {
	switch b.side {
	case theEtcd:
		return func() error { return outages[b.how](g) }, nil
	case theLink:
		return func() error { return rifts[b.how](g, source, target) }, nil
	}
	victims, err := g.victims(b.side, source, target)
	for _, all := range []map[string]assault{assaults, severances, shortages} {
		if act := all[b.how]; act != nil {
			hit = func() error { return act(g, victims) }
		}
	}
	return hit, err
}

// victims are those whom a blow hits.
func (g *game) victims(side string, source, target *harness.Node) ([]*harness.Node, error) {
	switch side {
	case theSource:
		return []*harness.Node{source}, nil
	case theTarget:
		return []*harness.Node{target}, nil
	case theBoth:
		return []*harness.Node{source, target}, nil
	}
	s, err := g.cluster.Metadata()
	if err != nil {
		return nil, err
	}
	n := g.cluster.Node(s.Coordinator)
	if n == nil {
		return nil, errors.New("there is no coordinator")
	}
	return []*harness.Node{n}, nil
}

// cancelledAt are steps at which a migration is taken back, for those of the way back.
var cancelledAt = []migrate.Step{migrate.Yielded, migrate.Pulling, migrate.Pulled, migrate.Adopted}

// errLeaseEnded says that a node of a migration was taken for dead before anything was done to it.
var errLeaseEnded = errors.New("a node's lease has ended by itself")

// haltSome has some migration halt at a step. Leases are short, and where the host of a virtual machine takes most of its cores
// for a while one ends by itself, and with it the migration, as it should: then another one is begun.
func (g *game) haltSome(step migrate.Step) (source, target *harness.Node, err error) {
	for range 3 {
		source, target = g.sides()
		if err = g.haltMove(step, source, target); !errors.Is(err, errLeaseEnded) {
			break
		}
		g.say("%v; another migration is begun", err)
		g.release()
		if _, err := g.movesEnd(); err != nil {
			return nil, nil, err
		}
	}
	return source, target, err
}

// haltMove moves half of what a node owns, or moves it back half-way, until that halts at a step.
func (g *game) haltMove(step migrate.Step, source, target *harness.Node) error {
	early := cancelledAt[g.rng.IntN(len(cancelledAt))]
	back := slices.Contains(migrate.ReturnSteps, step)
	if err := g.haltAt(step); err != nil {
		return err
	}
	if back {
		if err := g.haltAt(early); err != nil {
			return err
		}
	}
	options := moveOptions(g.rng)
	options.Sample = options.Sample || step == migrate.AfterSample
	if slices.Contains(lateSteps, step) || slices.Contains(migrate.LateSteps, step) && g.rng.IntN(3) == 0 {
		options.Ownership = meta.OwnershipLate
	}
	id, err := g.migrateWith(source, target, options)
	if err != nil {
		return err
	}
	if back {
		if err := errors.Join(g.reached(early, id), g.answers(20), g.cancel(id)); err != nil {
			return err
		}
	}
	if err := g.reached(step, id); err != nil {
		return err
	}
	g.say("migration %d halts at %s", id, step)
	return nil
}

func (g *game) haltAt(step migrate.Step) error {
	return os.WriteFile(filepath.Join(g.halts, string(step)), nil, 0o600)
}

// reached waits until a migration halts at a step.
func (g *game) reached(step migrate.Step, id uint64) error {
	var ended error
	err := harness.Eventually(fmt.Sprintf("migration %d comes to %s", id, step), func() error {
		if _, err := os.Stat(migrate.Halts{Dir: g.halts}.Reached(step)); err == nil {
			return nil
		}
		s, err := g.cluster.Metadata()
		if err == nil && step == migrate.Completed && s.Migrations[id].Stage == meta.Done {
			return nil // Its end may be seen before it can halt.
		}
		if err == nil {
			if m := s.Migrations[id]; m.Stage.Ended() && (strings.HasSuffix(m.Why, "is not alive") || strings.Contains(m.Why, " died")) {
				ended = fmt.Errorf("migration %d does not come to %s: %w: %s", id, step, errLeaseEnded, m.Why)
				return nil
			}
			err = fmt.Errorf("it is %+v, %+v", s.Migrations[id], s.Moves[id])
		}
		return cmp.Or(g.cluster.Crashed(), err)
	})
	return cmp.Or(err, ended)
}

// release lets everybody go on who halts.
func (g *game) release() {
	names, _ := filepath.Glob(filepath.Join(g.halts, "*"))
	for _, name := range names {
		_ = os.Remove(name) // Another one may have been faster.
	}
}
