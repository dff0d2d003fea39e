package store_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// deafPuller never answers.
type deafPuller struct{}

func (deafPuller) Want([]store.ArrivingKey, func(error)) {}

// arrivingHalf is a store of which half arrives and nothing comes.
func arrivingHalf(t *testing.T) (*store.Store, *store.Arrival) {
	t.Helper()
	st := open(t, store.Options{Cluster: true})
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{{First: 0, Last: 1<<63 - 1}}, Ceiling: 100, Puller: deafPuller{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.End)
	return st, a
}

// arrivingLooks are operations that need what has not arrived.
func arrivingLooks() map[string]func(*store.Session) store.Status {
	return map[string]func(*store.Session) store.Status{
		"scan": func(ss *store.Session) store.Status {
			_, st := ss.Scan(0, 0, 10, func([]byte, *store.View) {})
			return st
		},
		"random key": func(ss *store.Session) store.Status {
			_, _, st := ss.RandomKeyFrom(0, 0, nil)
			return st
		},
		"key": func(ss *store.Session) store.Status {
			k := store.Key{Place: 7, Table: 0, Bytes: []byte("absent")}
			_, st := ss.Get(&k)
			return st
		},
	}
}

// A target that returns its ranges pulls nothing any more, and the source has not replayed yet.
func TestWhoNeedsWhatIsReturnedWaitsForTheEndAndDoesNotLookAgainAndAgain(t *testing.T) {
	for name, look := range arrivingLooks() {
		t.Run(name, func(t *testing.T) {
			st, a := arrivingHalf(t)
			ss := session(t, st)
			a.Release(nil)
			var looks atomic.Int32
			over := make(chan error, 1)
			go func() { over <- lookUntilThere(t, ss, &looks, look) }()
			await.True(t, "somebody has looked", func() bool { return looks.Load() > 0 })
			for range 500 { // Time enough for thousands of looks.
				awaitCut(t, st)
			}
			if n := looks.Load(); n != 1 {
				t.Errorf("%d looks before the end", n)
			}
			a.End()
			if err := <-over; err != nil {
				t.Fatal(err)
			}
			if n := looks.Load(); n != 2 {
				t.Errorf("%d looks, want one before the end and one after it", n)
			}
		})
	}
}

// lookUntilThere looks until what arrives is not waited for any more.
func lookUntilThere(t *testing.T, ss *store.Session, looks *atomic.Int32, look func(*store.Session) store.Status) error {
	for {
		ss.Begin()
		st := look(ss)
		ss.End()
		looks.Add(1)
		if st != store.Cold {
			return nil
		}
		if err := ss.Fetch(t.Context()); err != nil {
			return err
		}
	}
}

func TestWhoWaitedWhenPullsStoppedLooksAgain(t *testing.T) {
	for name, look := range arrivingLooks() {
		t.Run(name, func(t *testing.T) {
			st, a := arrivingHalf(t)
			ss := session(t, st)
			ss.Begin()
			if got := look(ss); got != store.Cold {
				t.Fatal(got)
			}
			ss.End()
			a.Release(nil) // Before the fetch has begun: it looked before, and that counts.
			if err := ss.Fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestWhoWaitsForTheEndOfAReturnFailsWhenTheNodeStops(t *testing.T) {
	st, a := arrivingHalf(t)
	ss := session(t, st)
	a.Release(nil)
	ss.Begin()
	if _, got := ss.Scan(0, 0, 10, func([]byte, *store.View) {}); got != store.Cold {
		t.Fatal(got)
	}
	ss.End()
	f := ss.TakeFetch()
	done := make(chan struct{})
	f.Start(func() { close(done) })
	stops := errors.New("the node stops")
	a.Release(stops)
	if <-done; !errors.Is(f.Err(), stops) {
		t.Errorf("it is told %v", f.Err())
	}
}

// The source may be slow, or etcd away, for ever. Clients are not to wait so long.
func TestWhoWaitsForTheEndOfAReturnWaitsOnlyAsLongAsItMay(t *testing.T) {
	for name, look := range arrivingLooks() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, a := arrivingHalf(t)
				ss := session(t, st)
				a.Release(nil)
				ss.Begin()
				if got := look(ss); got != store.Cold {
					t.Fatal(got)
				}
				ss.End()
				f, began, done := ss.TakeFetch(), time.Now(), make(chan struct{})
				f.Patience(30 * time.Second)
				f.Start(func() { close(done) })
				<-done
				if took := time.Since(began); took != 30*time.Second || !errors.Is(f.Err(), store.ErrReturning) {
					t.Errorf("after %s of the bubble's clock it is told %v", took, f.Err())
				}
			})
		})
	}
}
