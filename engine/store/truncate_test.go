package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// An heir sees the log only: what was truncated must not come back with it.
func TestAnHeirKnowsOfTruncations(t *testing.T) {
	forHeirs(t, func(t *testing.T, o store.Options, rng *rand.Rand) {
		e := newEstate(t, rng, rng.IntN(2) == 0)
		e.live(rng.IntN(400))
		gone := rng.IntN(estateDBs + 1)
		if gone == estateDBs {
			if err := e.st.TruncateAll(); err != nil {
				t.Fatal(err)
			}
		} else if err := e.st.Truncate(gone); err != nil {
			t.Fatal(err)
		}
		for db := range e.want {
			if gone == db || gone == estateDBs {
				clear(e.want[db])
			}
		}
		e.compare("truncated", e.st, everywhere)
		e.live(rng.IntN(100))
		log := e.die()
		o, _ = e.heirOptions(o)
		st := open(t, o)
		im := importer(t, st, nil)
		importAll(t, im, log, 2, rng)
		finish(t, im)
		e.compare("imported after a truncation", st, everywhere)
	})
}

func TestInAClusterDatabasesKeepTheirTables(t *testing.T) {
	dev := device.NewMemory()
	t.Cleanup(dev.Close)
	o := store.Options{Device: dev, Durability: store.EverySec, SegmentBytes: 16 << 10, MemoryBytes: 256 << 10, Cluster: true}
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ss := session(t, st)
	for n := range 5000 { // More than memory holds.
		put(t, ss, 1, fmt.Sprint(n), strings.Repeat("x", 100), 0)
	}
	put(t, ss, 2, "stays", "x", 0)
	before := ss.Key(1, []byte("k"))
	if err := st.Truncate(1); err != nil {
		t.Fatal(err)
	}
	if after := ss.Key(1, []byte("k")); after.Table != before.Table || after.Place != before.Place {
		t.Fatalf("a key was at %x of table %d, and is at %x of table %d", before.Place, before.Table, after.Place, after.Table)
	}
	if seen := scanned(t, ss, 1); len(seen) != 0 {
		t.Fatalf("%d keys are left", len(seen))
	}
	if got := readKey(t, ss, 2, []byte("stays")); string(got) != "x" {
		t.Fatalf("a database that was not truncated has %q", got)
	}
	if err := st.Swap(1, 2); err == nil {
		t.Fatal("databases of a cluster were swapped")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	alone := o
	alone.Cluster = false
	if st, err = store.Open(alone); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Truncate(1), st.Close()); err != nil {
		t.Fatal(err)
	}
	if st, err := store.Open(o); err == nil {
		st.Close()
		t.Fatal("a directory with other tables became part of a cluster")
	}
}

func TestATruncationWaitsForAnImport(t *testing.T) {
	st := open(t, store.Options{Cluster: true})
	ss := session(t, st)
	put(t, ss, 0, "k", "v", 0)
	im := importer(t, st, nil)
	done := make(chan error, 1)
	st.StartTruncate(-1, 0, func(err error) { done <- err })
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range foreignLog(100) {
		if err := w.Import(t.Context(), piece); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("the truncation did not wait: %v", err)
	default:
	}
	finish(t, im)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if seen := scanned(t, ss, 0); len(seen) != 0 {
		t.Fatalf("%d keys are left", len(seen))
	}
}

func TestATruncationWaitsOnlySoLongUntilItIsDecidedWhoseAPlaceIs(t *testing.T) {
	limit := record.Place(1 << 63)
	for name, c := range map[string]struct {
		begin func(t *testing.T, st *store.Store) (end func())
		want  error
	}{
		"a return": {func(t *testing.T, st *store.Store) func() {
			a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{{First: limit, Last: ^record.Place(0)}}, Ceiling: 7, Puller: noPuller{t}})
			if err != nil {
				t.Fatal(err)
			}
			a.Release(nil)
			return a.End
		}, store.ErrReturning},
		"a departure": {func(t *testing.T, st *store.Store) func() {
			d, err := st.Depart(t.Context(), []store.Range{{First: limit, Last: ^record.Place(0)}})
			if err != nil {
				t.Fatal(err)
			}
			return d.End
		}, store.ErrDeparting},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var withheld atomic.Bool
				dev := device.NewMemory()
				t.Cleanup(dev.Close)
				st := open(t, store.Options{
					Device: dev, Durability: store.EverySec, Cluster: true,
					Serves: func() func(record.Place) bool {
						return func(p record.Place) bool { return p < limit || !withheld.Load() }
					},
				})
				ss := session(t, st)
				for n := range 100 {
					put(t, ss, 0, fmt.Sprint(n), "v", 0)
				}
				end := c.begin(t, st)
				withheld.Store(true)
				for _, db := range []int{0, -1} {
					began, done := time.Now(), make(chan error, 1)
					st.StartTruncate(db, 30*time.Second, func(err error) { done <- err })
					if err := <-done; !errors.Is(err, c.want) || !store.Unsettled(err) || time.Since(began) != 30*time.Second {
						t.Errorf("after %s of the bubble's clock it is told %v", time.Since(began), err)
					}
				}
				withheld.Store(false)
				end()
				done := make(chan error, 1)
				st.StartTruncate(0, 30*time.Second, func(err error) { done <- err })
				if err := <-done; err != nil || len(scanned(t, ss, 0)) != 0 {
					t.Errorf("after the end: %v, and %d keys are left", err, len(scanned(t, ss, 0)))
				}
			})
		})
	}
}

func TestATruncationThatWaitsEndsWithTheStore(t *testing.T) {
	st, err := store.Open(store.Options{Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	im := importer(t, st, nil)
	done := make(chan error, 1)
	st.StartTruncate(0, 0, func(err error) { done <- err })
	im2, err := st.NewImporter(store.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	im.Abort() // The other one goes on.
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, store.ErrClosed) {
		t.Fatalf("%v", err)
	}
	im2.Abort()
}

func TestTruncationSparesWhatIsAnothersByNow(t *testing.T) {
	dev := device.NewMemory()
	t.Cleanup(dev.Close)
	limit := record.Place(1 << 63)
	st := open(t, store.Options{
		Device: dev, Durability: store.EverySec, Cluster: true,
		Serves: func() func(record.Place) bool { return func(p record.Place) bool { return p < limit } },
	})
	ss := session(t, st)
	for n := range 1000 {
		put(t, ss, 0, fmt.Sprint(n), "v", 0)
	}
	if err := st.TruncateAll(); err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		k := ss.Key(0, fmt.Append(nil, n))
		if there := get(t, ss, 0, fmt.Sprint(n)) == "v"; there != (k.Place >= limit) {
			t.Fatalf("a key at %x is there: %v", k.Place, there)
		}
	}
}

func TestATruncationWaitsUntilItIsDecidedWhoseAPlaceIs(t *testing.T) {
	for name, stays := range map[string]bool{"it was handed over": false, "it stays": true} {
		t.Run(name, func(t *testing.T) {
			dev := device.NewMemory()
			t.Cleanup(dev.Close)
			limit := record.Place(1 << 63)
			var withheld atomic.Bool
			st := open(t, store.Options{
				Device: dev, Durability: store.EverySec, Cluster: true,
				Serves: func() func(record.Place) bool {
					held := withheld.Load()
					return func(p record.Place) bool { return p < limit || !held }
				},
			})
			ss := session(t, st)
			for n := range 1000 {
				put(t, ss, 0, fmt.Sprint(n), "v", 0)
			}
			d, err := st.Depart(t.Context(), []store.Range{{First: limit, Last: ^record.Place(0)}})
			if err != nil {
				t.Fatal(err)
			}
			withheld.Store(true)
			done := make(chan error, 1)
			st.StartTruncate(0, 0, func(err error) { done <- err })
			await.True(t, "something is deleted", func() bool { keys, _ := st.Count(0); return keys < 1000 })
			select {
			case err := <-done:
				t.Fatalf("the truncation did not wait: %v", err)
			default:
			}
			withheld.Store(!stays)
			d.End()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			for n := range 1000 {
				k := ss.Key(0, fmt.Append(nil, n))
				if there := get(t, ss, 0, fmt.Sprint(n)) == "v"; there != (k.Place >= limit && !stays) {
					t.Fatalf("a key at %x is there: %v", k.Place, there)
				}
			}
		})
	}
}
