package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
)

// What was acknowledged must be in the copies elsewhere: they are taken as they
// are at some moment, made into a device, and opened. Whatever they lack must
// not have been acknowledged, and what is there must be of one moment.

// replicatedConfigs fill, clean and drop segments all the time.
func replicatedConfigs() map[string]store.Options {
	const kib = 1 << 10
	return map[string]store.Options{
		"everysec/4KiB":        {Durability: store.EverySec, SegmentBytes: 4 * kib, Heads: 3},
		"everysec/16KiB/spill": {Durability: store.EverySec, SegmentBytes: 16 * kib, Heads: 2, MemoryBytes: 512 * kib},
		"always/8KiB":          {Durability: store.Always, SegmentBytes: 8 * kib, Heads: 2},
	}
}

func forReplicatedConfigs(t *testing.T, f func(*testing.T, store.Options)) {
	for name, o := range replicatedConfigs() {
		t.Run(name, func(t *testing.T) { f(t, o) })
	}
}

// lostOf takes the node with all it has, and leaves the copies elsewhere.
func lostOf(t testing.TB, c *hlogtest.Copies) death {
	return death{"lost", false, func(d *device.Memory) *device.Memory {
		c.Check()
		left, err := c.Lost(d, "identity.json", "tables.json")
		if err != nil {
			t.Errorf("what the copies are: %v", err)
		}
		return left
	}}
}

// anyDeath is of the process, the power or the node.
func anyDeath(w *world, rng *rand.Rand) death {
	switch rng.IntN(4) {
	case 0:
		return killed()
	case 1:
		return unplugged(rng)
	default:
		return lostOf(w.t, w.copies)
	}
}

// annoy makes the copies worse or better for a while.
func annoy(c *hlogtest.Copies, rng *rand.Rand) {
	switch rng.IntN(6) {
	case 0:
		c.Hold()
	case 1:
		c.RefuseOpens(1 + rng.IntN(3))
	case 2:
		c.RefuseDrops(1 + rng.IntN(2))
	default:
		c.Flow()
	}
}

func TestWhatWasAcknowledgedSurvivesTheLossOfItsNodeAtAnyStep(t *testing.T) {
	t.Parallel()
	forReplicatedConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 99))
		w := newWorldWith(t, o, 3, seed, hlogtest.New(t, seed))
		for n := range scale(600) {
			w.owners[rng.IntN(len(w.owners))].step()
			if rng.IntN(40) == 0 {
				w.sync()
			}
			if rng.IntN(20) == 0 {
				d := anyDeath(w, rng)
				clone, b := w.die(d)
				w.verify(fmt.Sprintf("%s after step %d", d.name, n), clone, b)
			}
		}
		w.stop()
		w.start(w.dev)
		w.compare("closed and opened again", w.owners[0].ss, w.whole())
		w.abandon()
	})
}

func TestWhatWasAcknowledgedSurvivesGenerationsOfLostNodes(t *testing.T) {
	forReplicatedConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 99))
		w := newWorldWith(t, o, 3, seed, hlogtest.New(t, seed))
		for life := range 2 + scale(8) {
			for range 20 + rng.IntN(100) {
				w.owners[rng.IntN(len(w.owners))].step()
				if rng.IntN(50) == 0 {
					w.sync()
				}
			}
			d := anyDeath(w, rng)
			clone, b := w.die(d)
			w.reopen(fmt.Sprintf("%s in life %d", d.name, life), clone, b)
		}
		w.stop()
		w.dev.Close()
	})
}

func TestWhatWasAcknowledgedSurvivesTheLossOfItsNodeInTheMiddleOfEverything(t *testing.T) {
	t.Parallel()
	forReplicatedConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 99))
		w := newWorldWith(t, o, 4, seed, hlogtest.New(t, seed))
		for life := range 1 + scale(2) {
			var clone *device.Memory
			var b bounds
			w.meanwhile(func() {
				for n := range 2 + scale(8) {
					if rng.IntN(2) == 0 {
						w.sync()
					}
					annoy(w.copies, rng)
					w.copies.Check()
					clone, b := w.die(lostOf(t, w.copies))
					w.verify(fmt.Sprintf("lost, life %d, clone %d", life, n), clone, b)
				}
				w.copies.Flow()
				clone, b = w.die(anyDeath(w, rng))
			})
			w.reopen(fmt.Sprintf("life %d", life), clone, b)
		}
		w.stop()
		w.dev.Close()
	})
}

// lose takes the node away, and looks at what the copies elsewhere are.
func (m *mill) lose(what string) {
	m.t.Helper()
	least := m.acked.Load()
	m.copies.Check()
	left, err := m.copies.Lost(m.dev, "identity.json", "tables.json")
	if err != nil {
		m.t.Fatal(err)
	}
	defer left.Close()
	m.look(what, left, least, m.issued.Load())
}

func TestTheLossOfANodeAtAnyStepLeavesOneMoment(t *testing.T) {
	t.Parallel()
	forReplicatedConfigs(t, func(t *testing.T, o store.Options) {
		o.MemoryBytes = 0 // One would wait for memory that the guards of the others hold.
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 99))
		m := newMillWith(t, o, 4, seed, hlogtest.New(t, seed))
		defer m.abandon()
		for n := range scale(150) {
			for range 1 + rng.IntN(30) {
				m.crew[rng.IntN(len(m.crew))].step()
			}
			if rng.IntN(20) == 0 {
				m.sync()
			}
			m.lose(fmt.Sprintf("loss %d", n))
		}
	})
}

func TestTheLossOfANodeInTheMiddleOfEverythingLeavesOneMoment(t *testing.T) {
	forReplicatedConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 99))
		m := newMillWith(t, o, 4, seed, hlogtest.New(t, seed))
		defer m.abandon()
		m.meanwhile(func() {
			for n := range 2 + scale(20) {
				annoy(m.copies, rng)
				m.lose(fmt.Sprintf("loss %d", n))
			}
			m.copies.Flow()
			m.copies.RefuseOpens(0)
		})
	})
}
