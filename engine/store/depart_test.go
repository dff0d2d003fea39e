package store_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// copying is a move whose source is written to until the end.
type copying struct {
	*move
	d     *store.Departure
	im    *store.Importer
	floor record.Floor
}

// begin begins the copy, or begins it anew.
func (c *copying) begin() {
	c.t.Helper()
	if c.im != nil {
		c.im.Abort()
		c.d.End()
	}
	if err := c.st.Retract(c.t.Context(), c.ranges); err != nil {
		c.t.Fatal(err)
	}
	c.floor = record.Floor{}
	for _, r := range c.ranges {
		c.floor.Spans = append(c.floor.Spans, record.Span(r))
	}
	c.floor.Batch, c.floor.Segment = c.st.Position()
	var err error
	if c.im, err = c.st.NewImporter(store.ImportOptions{Owns: c.owns, Foreign: true}); err != nil {
		c.t.Fatal(err)
	}
	if c.d, err = c.e.st.Depart(c.t.Context(), c.ranges); err != nil {
		c.t.Fatal(err)
	}
}

// all copies all records, by several workers.
func (c *copying) all(rng *rand.Rand) {
	var wg sync.WaitGroup
	for _, part := range c.partitions(rng) {
		w, err := c.im.NewWorker()
		if err != nil {
			c.t.Fatal(err)
		}
		wg.Go(func() {
			c.some(w, func(ss *store.Session, at store.PullCursor, emit func([]byte)) (store.PullCursor, store.Status) {
				return ss.Pull(part, at, 400, emit)
			})
		})
	}
	wg.Wait()
	c.apply()
}

// some imports all that calls of the source give.
func (c *copying) some(w *store.ImportWorker, call func(*store.Session, store.PullCursor, func([]byte)) (store.PullCursor, store.Status)) {
	ss, err := c.e.st.NewSession()
	if err != nil {
		c.t.Error(err)
		return
	}
	defer ss.Close()
	for cursor, more := (store.PullCursor{}), true; more; more = cursor != (store.PullCursor{}) {
		var b []byte
		b, cursor = c.pull(ss, cursor, func(at store.PullCursor, emit func([]byte)) (store.PullCursor, store.Status) {
			return call(ss, at, emit)
		})
		if err := w.Import(c.t.Context(), b); err != nil {
			c.t.Error(err)
			return
		}
		if err := w.Durable(c.t.Context()); err != nil {
			c.t.Error(err)
			return
		}
	}
}

// round copies what has changed.
func (c *copying) round() {
	c.t.Helper()
	keys, err := c.d.Take(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	w, err := c.im.NewWorker()
	if err != nil {
		c.t.Fatal(err)
	}
	c.some(w, func(ss *store.Session, at store.PullCursor, emit func([]byte)) (store.PullCursor, store.Status) {
		return ss.PullChanges(keys, at, 300, emit)
	})
	c.apply()
}

func (c *copying) apply() {
	c.t.Helper()
	if err := c.im.Apply(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// end copies what has changed last, when nobody writes any more.
func (c *copying) end() {
	c.t.Helper()
	c.round()
	if _, err := c.st.Settle(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.d.End()
	c.st.Succeed(c.e.st.Ceiling())
	c.im.Abort()
}

// again opens the target as a death of its process leaves it.
func (c *copying) again() {
	c.t.Helper()
	clone := c.dev.Crash()
	c.t.Cleanup(clone.Close)
	if err := c.st.CloseUnsaved(); err != nil {
		c.t.Fatal(err)
	}
	c.opts.Device, c.dev = clone, clone
	c.opts.Floors = []record.Floor{c.floor}
	c.open()
}

// forCopies runs f for targets that have a log, with fresh moves.
func forCopies(t *testing.T, f func(*move, *rand.Rand)) {
	for _, name := range []string{"everysec", "always/spill"} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seedOf(t), 13))
			for n := range max(scale(12), 3) {
				t.Run(fmt.Sprint(n), func(t *testing.T) { f(newMove(t, heirConfigs()[name], rng), rng) })
			}
		})
	}
}

func TestACopyOfWhatIsWrittenToMeanwhileIsItsSourceInTheEnd(t *testing.T) {
	t.Parallel()
	forCopies(t, func(m *move, rng *rand.Rand) {
		c := &copying{move: m}
		c.open()
		ours := rand.New(rand.NewPCG(rng.Uint64(), 3)) // The source has the other one.
		for range 1 + ours.IntN(2) {                   // The first may come to nothing.
			c.begin()
			var source sync.WaitGroup
			steps := ours.IntN(500)
			source.Go(func() { m.e.live(steps) })
			c.all(ours)
			for range ours.IntN(3) {
				c.round()
			}
			source.Wait()
		}
		m.e.live(ours.IntN(50))
		c.end()
		m.e.compare("the copy", m.st, m.owns)
		c.again()
		m.e.compare("the copy in its next life", m.st, m.owns)
		if err := m.st.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNothingOfACopyIsRemovedByItselfAndTakesTheVersionOfWhatFollows(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 5))
	m := &move{t: t, e: newEstate(t, rng, true), seed: 1}
	m.opts, m.dev = m.e.heirOptions(store.Options{SegmentBytes: 4 << 10, Durability: store.EverySec})
	m.ranges = []store.Range{{First: 0, Last: ^record.Place(0) >> 1}}
	c := &copying{move: m}
	c.open()
	ss, own := m.e.ss[0], session(t, c.st)
	var copied, mine [][]byte
	for n := range 400 {
		b := []byte(fmt.Sprint("key ", n))
		if k := ss.Key(0, b); m.owns(k.Place) {
			copied = append(copied, b)
		} else {
			mine = append(mine, b)
		}
	}
	put := func(ss *store.Session, keys [][]byte, w store.Write) {
		t.Helper()
		for _, b := range keys {
			k := ss.Key(0, b)
			if st := attempt(ss, func() store.Status { return ss.Put(&k, w, nil) }); st != store.OK {
				t.Fatal(st)
			}
		}
	}
	soon := store.Write{Value: []byte("soon over"), ExpireAt: m.e.clock.Load() + 10}
	put(ss, copied, soon)
	c.begin()
	c.all(rng)
	// The source makes them last, and the target's clock goes by before it hears of that.
	put(ss, copied, store.Write{Value: []byte("stays")})
	put(own, mine, soon)
	m.e.clock.Add(20)
	await.True(t, "what is the target's own is removed", func() bool { return c.st.Metrics().Expired >= int64(len(mine)) })
	if err := c.st.Truncate(0); err != nil { // Nor is it removed with all that is the target's.
		t.Fatal(err)
	}
	c.end()
	for _, when := range []string{"the copy", "the copy in its next life"} {
		got := session(t, c.st)
		for _, b := range copied {
			k := got.Key(0, b)
			var value []byte
			st := attempt(got, func() store.Status {
				v, st := got.Get(&k)
				value = bytes.Clone(v.Value)
				return st
			})
			if st != store.OK || string(value) != "stays" {
				t.Fatalf("%s: %s: %v %q", when, b, st, value)
			}
		}
		got.Close()
		own.Close()
		if when == "the copy" {
			c.again()
		}
	}
	c.close()
}

func TestWhatIsNotNotedOnTheWayWouldBeMissed(t *testing.T) {
	// Changes in place are not noted, so a store that has them cannot be copied.
	st := open(t, store.Options{SegmentBytes: 4 << 10})
	if _, err := st.Depart(context.Background(), []store.Range{{}}); err == nil {
		t.Fatal("a store that changes records in place notes changes")
	}
}
