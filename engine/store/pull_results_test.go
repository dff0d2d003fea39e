package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

var allPlaces = []store.Range{{First: 0, Last: ^record.Place(0)}}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sameResults checks that receipts and notes tell of all results that the index has. Nobody may run operations meanwhile.
func sameResults(t failer, what string, st *store.Store, ranges []store.Range) (n int) {
	t.Helper()
	given := func(give func(context.Context, []store.Range, func([]byte)) error) map[string]string {
		all := map[string]string{}
		if err := give(context.Background(), ranges, func(entry []byte) {
			p := record.PtrOf(entry)
			all[string(p.Key())] = string(p.Value())
		}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return all
	}
	got, want := given(st.Completions), given(st.CompletionsOfIndex)
	if !maps.Equal(got, want) {
		t.Fatalf("%s: %d results are given, and the index has %d", what, len(got), len(want))
	}
	return len(got)
}

// coldStore is a store that has much more than fits its memory, and a few results among that.
type coldStore struct {
	t     *testing.T
	opts  store.Options
	dev   *device.Memory
	clock atomic.Int64
	st    *store.Store
}

const (
	coldKeys    = 8_000
	coldResults = 20
	coldMemory  = 4<<20 + 512<<10 // The index takes 4 MiB.
)

func newColdStore(t *testing.T) *coldStore {
	t.Helper()
	c := &coldStore{t: t, dev: device.NewMemory()}
	t.Cleanup(c.dev.Close)
	c.clock.Store(1_000_000)
	c.opts = store.Options{Device: c.dev, Durability: store.EverySec, MemoryBytes: coldMemory, SegmentBytes: 64 << 10, Cluster: true, Heads: 2, Now: c.clock.Load}
	return c
}

func (c *coldStore) open() {
	c.t.Helper()
	st, err := store.Open(c.opts)
	if err != nil {
		c.t.Fatal(err)
	}
	c.st = st
}

// warm opens it with memory for everything, and cool with as little as it has otherwise.
func (c *coldStore) warm() {
	c.opts.MemoryBytes = 0
	c.open()
}

func (c *coldStore) cool() {
	c.opts.MemoryBytes = coldMemory
	c.open()
}

func (c *coldStore) close() {
	c.t.Helper()
	if err := c.st.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// fill writes keys, and runs operations in the midst of that.
func (c *coldStore) fill() {
	c.t.Helper()
	ss := session(c.t, c.st)
	defer ss.Close()
	for n := range coldKeys {
		k, w := key(ss, n), store.Write{Value: fmt.Appendf(nil, "%0200d", n)}
		s := until(c.t, ss, func() (s store.Status) {
			if n%(coldKeys/coldResults) != 0 {
				return ss.Put(&k, w, nil)
			}
			_, _, s = ss.Once(&k, store.OpID{Client: 1, Seq: uint64(n)}, func(*store.View, bool) store.Effect {
				return store.Effect{Write: &w, Result: fmt.Append(nil, "result ", n)}
			})
			return s
		})
		if s != store.OK {
			c.t.Fatal(s, ss.Err())
		}
	}
}

// restart opens what the death of the process leaves.
func (c *coldStore) restart() {
	c.t.Helper()
	clone := c.dev.Crash()
	c.t.Cleanup(clone.Close)
	if err := c.st.CloseUnsaved(); err != nil {
		c.t.Fatal(err)
	}
	c.opts.Device, c.dev = clone, clone
	c.open()
}

// next is a store that has all by an import of this one's log.
func (c *coldStore) next() *coldStore {
	c.t.Helper()
	c.close()
	heir := newColdStore(c.t)
	heir.open()
	im := importer(c.t, heir.st, nil)
	importAll(c.t, im, segmentsOf(c.t, c.dev), 2, rand.New(rand.NewPCG(1, 2)))
	finish(c.t, im)
	return heir
}

// Clients wait while results are given to the next owner. So nothing but results is read for it, whoever wrote them, and none is missed.
func TestToGiveResultsReadsNothingElse(t *testing.T) {
	checkpoint := func(c *coldStore) {
		if err := c.st.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, lives := range map[string]func(c *coldStore) *coldStore{
		"written":  func(c *coldStore) *coldStore { return c },
		"replayed": func(c *coldStore) *coldStore { c.restart(); return c },
		"in a snapshot": func(c *coldStore) *coldStore {
			c.close()
			c.open()
			return c
		},
		"in memory, then in a snapshot": func(c *coldStore) *coldStore {
			c.close()
			c = newColdStore(c.t)
			c.warm()
			c.fill()
			c.close()
			c.cool()
			return c
		},
		"in a snapshot and behind it": func(c *coldStore) *coldStore {
			checkpoint(c)
			c.fill() // Operations are run no second time.
			c.restart()
			return c
		},
		"imported":               func(c *coldStore) *coldStore { return c.next() },
		"imported, and replayed": func(c *coldStore) *coldStore { c = c.next(); c.restart(); return c },
		"imported twice":         func(c *coldStore) *coldStore { return c.next().next() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newColdStore(t)
			c.open()
			c.fill()
			c = lives(c)
			defer func() { c.close() }()
			before := c.st.Metrics().ColdReads
			if err := c.st.Completions(t.Context(), allPlaces, func([]byte) {}); err != nil {
				t.Fatal(err)
			}
			if reads := c.st.Metrics().ColdReads - before; reads > 2*coldResults { // Two records may look alike to the index.
				t.Errorf("%d records were read for %d results", reads, coldResults)
			}
			if n := sameResults(t, name, c.st, allPlaces); n != coldResults {
				t.Errorf("%d results are given, of %d", n, coldResults)
			}
			if c.st.Metrics().ColdReads-before < coldKeys/4 {
				t.Error("nearly all is in memory: this tests nothing")
			}
		})
	}
}

// A segment of a snapshot that cannot be read may have results. Nobody gives places away as if it had none.
func TestResultsThatCannotBeReadAreNotTakenForAbsent(t *testing.T) {
	c := newColdStore(t)
	c.warm()
	c.fill()
	c.close()
	damageValue(t, c.dev, "result 0")
	c.cool()
	defer c.st.CloseUnsaved()
	if err := c.st.Completions(t.Context(), allPlaces, func([]byte) {}); err == nil {
		t.Error("results are given though not all can be read")
	}
}

// Without notes the index is gone through. That takes long, and whoever waits hears that it goes on.
func TestWhoeverLooksForResultsSaysThatItAdvances(t *testing.T) {
	c := newColdStore(t)
	c.open()
	defer func() { c.close() }()
	c.fill()
	for _, way := range []string{"receipts", "index"} {
		calls, given := 0, 0
		o := store.CompletionOptions{Emit: func([]byte) { given++ }, Advanced: func() error {
			calls++
			awaitCut(t, c.st) // A target that results are sent to from here may have stopped.
			return nil
		}}
		if err := c.st.CompletionsWith(t.Context(), allPlaces, o); err != nil {
			t.Fatal(err)
		}
		if least := map[string]int{"receipts": 1, "index": 100}[way]; calls < least || given != coldResults {
			t.Errorf("%s: it says %d times that it goes on, and gives %d results", way, calls, given)
		}
		gone := errors.New("nobody listens")
		o.Advanced = func() error { return gone }
		if err := c.st.CompletionsWith(t.Context(), allPlaces, o); !errors.Is(err, gone) {
			t.Errorf("%s: it goes on though nobody listens: %v", way, err)
		}
		c.st.LoseNotes(c.clock.Load() + 1)
	}
}

// awaitCut waits until nobody is inside a guard that was there.
func awaitCut(t *testing.T, st *store.Store) {
	t.Helper()
	passed := make(chan struct{})
	st.AfterGuards(func() { close(passed) })
	<-passed
}
