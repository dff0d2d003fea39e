package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// importAside begins an import whose records have no copies until it is adopted.
func importAside(t testing.TB, st *store.Store) *store.Importer {
	t.Helper()
	im, err := st.NewImporter(store.ImportOptions{Aside: []store.Range{everyPlace}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(im.Abort)
	return im
}

// adopt makes what was imported safe: nobody needs the logs any more that it came from.
func adopt(t testing.TB, st *store.Store, im *store.Importer) {
	t.Helper()
	if err := im.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := im.Pending(); n != 0 {
		t.Fatalf("%d side segments are pending after they were adopted", n)
	}
	st.Arrived([]store.Range{everyPlace})
}

// An heir serves before it has copies of what it took: clients write, delete and let
// expire, the cleaner comes by, and then the heir is lost with all that had no copies. The next one has its
// log and those that are still kept.
func TestAnHeirThatIsLostBeforeItHasCopiesLosesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 7))
	e := newEstate(t, rng, true)
	e.live(rng.IntN(600))
	kept := e.die()
	for range max(scale(12), 4) {
		r := newReign(t, store.Options{
			SegmentBytes: 4 << 10, Durability: store.EverySec, Heads: 2, Databases: estateDBs, Now: e.clock.Load,
		}, rng.Uint64())
		if rng.IntN(3) == 0 {
			im := importAside(t, r.st)
			importAll(t, im, some(kept, rng), 2, rng)
			im.Abort()
		}
		im := importAside(t, r.st)
		importAll(t, im, kept, 2, rng)
		finish(t, im)
		e.compare("served without copies", r.st, everywhere)
		e.ss = r.ss
		e.live(rng.IntN(600))
		if rng.IntN(2) == 0 {
			adopt(t, r.st, im)
			e.compare("with its copies", r.st, everywhere)
			kept = nil
			e.live(rng.IntN(300))
		}
		if _, err := r.st.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, r.lost()...)
		r.end()
	}
}

// What is removed after an heir serves, and while other logs are needed, is removed for who opens its log again and
// imports them once more.
func TestAnHeirThatStartsAgainBringsNothingBackThatWasDeleted(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 7))
	for range max(scale(6), 2) {
		e := newEstate(t, rng, true)
		e.live(rng.IntN(600))
		log := e.die()
		o, dev := e.heirOptions(store.Options{SegmentBytes: 4 << 10, Durability: store.EverySec})
		o.Arriving = []store.Range{everyPlace}
		for range 3 {
			st, err := store.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			im := importAside(t, st)
			importAll(t, im, log, 2, rng)
			finish(t, im)
			e.compare("served", st, everywhere)
			for i := range e.ss {
				e.ss[i] = session(t, st)
			}
			e.live(rng.IntN(400))
			clone := dev.Crash()
			t.Cleanup(clone.Close)
			if err := st.CloseUnsaved(); err != nil {
				t.Fatal(err)
			}
			o.Device, dev = clone, clone
		}
	}
}

func TestAnImportThatIsAsideWaitsForNoCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 7))
	e := newEstate(t, rng, false)
	e.live(400)
	log := e.die()
	r := newReign(t, store.Options{
		SegmentBytes: 4 << 10, Durability: store.EverySec, Heads: 2, Databases: estateDBs, Now: e.clock.Load,
	}, rng.Uint64())
	r.copies.Hold()
	im := importAside(t, r.st)
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	for _, segment := range log {
		if err := w.Import(t.Context(), segment); err != nil {
			t.Fatal(err)
		}
	}
	if im.Stats().Taken == 0 {
		t.Fatal("nothing was imported")
	}
	r.copies.Flow()
	finish(t, im)
	adopt(t, r.st, im)
	e.compare("with its copies", r.st, everywhere)
	r.end()
}

// endedWhenAwaited is a context that ends when somebody begins to wait for its end.
type endedWhenAwaited struct {
	context.Context
	ended atomic.Bool
}

func (c *endedWhenAwaited) Done() <-chan struct{} {
	c.ended.Store(true)
	return c.Context.Done()
}

func (c *endedWhenAwaited) Err() error {
	if c.ended.Load() {
		return c.Context.Err()
	}
	return nil
}

// A node that is told to stop, or whose lease has ended, waits for no copies that nobody can make now.
func TestTheEndOfAnImportWaitsForCopiesOnlyAsLongAsItMay(t *testing.T) {
	r := newReign(t, store.Options{SegmentBytes: 4 << 10, Durability: store.EverySec, Heads: 2}, seedOf(t))
	r.copies.Hold()
	putSealed(t, r.ss[0], "k", "v") // All before it has to have its copies, too.
	im := importAside(t, r.st)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := im.Finish(&endedWhenAwaited{Context: ctx}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	im.Abort()
	r.end()
}

func TestAnImportThatIsLargerThanMemoryEnds(t *testing.T) {
	const records, segment = 20_000, 16 << 10
	r := newReign(t, store.Options{SegmentBytes: segment, Durability: store.EverySec, Heads: 2, MemoryBytes: 2 << 20}, seedOf(t))
	im := importAside(t, r.st)
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range foreignLog(records) {
		if err := w.Import(t.Context(), piece); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, im)
	if m := r.st.Metrics(); m.SegmentsOnDisk < m.SegmentsInMemory {
		t.Fatalf("it fits into memory: %d segments are there, %d are not", m.SegmentsInMemory, m.SegmentsOnDisk)
	}
	adopt(t, r.st, im)
	if keys, _ := r.st.Count(0); keys != records {
		t.Fatalf("%d keys, want %d", keys, records)
	}
	r.end()
}

// A copy of what another store serves may go on for hours: what was taken over from the dead must not be without copies so long.
func TestAnImportIsAdoptedWhileWhatAnotherOwnsIsCopied(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 7))
	e := newEstate(t, rng, false)
	e.live(400)
	log := e.die()
	r := newReign(t, store.Options{
		SegmentBytes: 4 << 10, Durability: store.EverySec, Heads: 2, Databases: estateDBs, Now: e.clock.Load,
	}, rng.Uint64())
	foreign, err := r.st.NewImporter(store.ImportOptions{Owns: func(record.Place) bool { return false }, Foreign: true})
	if err != nil {
		t.Fatal(err)
	}
	im := importAside(t, r.st)
	importAll(t, im, log, 2, rng)
	finish(t, im)
	adopt(t, r.st, im)
	e.compare("with its copies", r.st, everywhere)
	foreign.Abort()
	r.end()
}

func TestAnImportFindsTheRoomInTheIndexThatItWasToExpect(t *testing.T) {
	const records = 100_000
	dev := device.NewMemory()
	t.Cleanup(dev.Close)
	st := open(t, store.Options{Device: dev, Durability: store.EverySec, Cluster: true})
	im := importAside(t, st)
	empty := st.Metrics().IndexBytes
	im.Expect(records)
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	before := st.Metrics().IndexBytes
	for _, piece := range foreignLog(records) {
		if err := w.Import(t.Context(), piece); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, im)
	if after := st.Metrics().IndexBytes; before == empty || after != before {
		t.Fatalf("the index had %d bytes, %d before the import and %d after it", empty, before, after)
	}
	if keys, _ := st.Count(0); keys != records {
		t.Fatalf("%d keys, want %d", keys, records)
	}
	adopt(t, st, im)
}
