package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

// crashConfigs are stores that must survive a crash, small so that segments
// fill, are cleaned and leave memory all the time.
func crashConfigs() map[string]store.Options {
	const kib = 1 << 10
	return map[string]store.Options{
		"everysec/4KiB":         {Durability: store.EverySec, SegmentBytes: 4 * kib, Heads: 2},
		"everysec/16KiB/spill":  {Durability: store.EverySec, SegmentBytes: 16 * kib, Heads: 2, MemoryBytes: 512 * kib},
		"everysec/64KiB":        {Durability: store.EverySec, SegmentBytes: 64 * kib, Heads: 3},
		"everysec/8KiB/many":    {Durability: store.EverySec, SegmentBytes: 8 * kib, Heads: 7},
		"always/4KiB":           {Durability: store.Always, SegmentBytes: 4 * kib, Heads: 2},
		"always/16KiB/spill":    {Durability: store.Always, SegmentBytes: 16 * kib, Heads: 2, MemoryBytes: 512 * kib},
		"checkpoint/4KiB":       {Durability: store.Checkpoint, SegmentBytes: 4 * kib, Heads: 2},
		"checkpoint/16KiB/less": {Durability: store.Checkpoint, SegmentBytes: 16 * kib, Heads: 2, MemoryBytes: 512 * kib},
	}
}

func forCrashConfigs(t *testing.T, f func(*testing.T, store.Options)) {
	for name, o := range crashConfigs() {
		t.Run(name, func(t *testing.T) { f(t, o) })
	}
}

func TestWhatWasAcknowledgedSurvivesADeathAtAnyStep(t *testing.T) {
	t.Parallel()
	forCrashConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 99))
		w := newWorld(t, o, 3, seed)
		for n := range scale(600) {
			w.owners[rng.IntN(len(w.owners))].step()
			if rng.IntN(40) == 0 {
				w.sync()
			}
			if rng.IntN(20) == 0 {
				d := killed()
				if rng.IntN(2) == 0 {
					d = unplugged(rng)
				}
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

func TestWhatWasAcknowledgedSurvivesGenerationsOfDeaths(t *testing.T) {
	t.Parallel()
	forCrashConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 99))
		w := newWorld(t, o, 3, seed)
		for life := range 2 + scale(10) {
			for range 20 + rng.IntN(150) {
				w.owners[rng.IntN(len(w.owners))].step()
				if rng.IntN(50) == 0 {
					w.sync()
				}
			}
			d := killed()
			if rng.IntN(2) == 0 {
				d = unplugged(rng)
			}
			clone, b := w.die(d)
			w.reopen(fmt.Sprintf("%s in life %d", d.name, life), clone, b)
		}
		w.stop()
		w.dev.Close()
	})
}

func TestWhatWasAcknowledgedSurvivesADeathInTheMiddleOfEverything(t *testing.T) {
	t.Parallel()
	forCrashConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 99))
		w := newWorld(t, o, 4, seed)
		for life := range 1 + scale(2) {
			var clone *device.Memory
			var b bounds
			w.meanwhile(func() {
				for n := range 1 + scale(5) {
					w.sync()
					d := killed()
					if rng.IntN(2) == 0 {
						d = unplugged(rng)
					}
					clone, b := w.die(d)
					w.verify(fmt.Sprintf("%s, life %d, clone %d", d.name, life, n), clone, b)
				}
				clone, b = w.die(killed())
			})
			w.reopen(fmt.Sprintf("life %d", life), clone, b)
		}
		w.stop()
		w.dev.Close()
	})
}
