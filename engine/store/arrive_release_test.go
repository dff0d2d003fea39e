package store_test

import (
	"errors"
	"sync"
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

// keptPuller keeps who waits for keys.
type keptPuller struct{ done chan func(error) }

func (p keptPuller) Want(_ []store.ArrivingKey, done func(error)) { p.done <- done }

// waitForKey begins to wait for a key, and returns where it is told how often that ended, and who ends it by an answer.
func waitForKey(t *testing.T) (ss *store.Session, a *store.Arrival, f *store.Fetch, told chan struct{}, answer func(error)) {
	t.Helper()
	st, p := open(t, store.Options{Cluster: true}), keptPuller{make(chan func(error), 1)}
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{{First: 0, Last: 1<<63 - 1}}, Ceiling: 100, Puller: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.End)
	ss = session(t, st)
	ss.Begin()
	k := store.Key{Place: 7, Table: 0, Bytes: []byte("absent")}
	if _, got := ss.Get(&k); got != store.Cold {
		t.Fatal(got)
	}
	ss.End()
	f, told = ss.TakeFetch(), make(chan struct{}, 10)
	f.Start(func() { told <- struct{}{} })
	return ss, a, f, told, <-p.done
}

func TestWhoWaitsForAKeyIsLetGoBy(t *testing.T) {
	stops, breaks := errors.New("the node stops"), errors.New("it breaks")
	for name, c := range map[string]struct {
		end  func(ss *store.Session, a *store.Arrival, answer func(error))
		want error
	}{
		"an answer":              {func(_ *store.Session, _ *store.Arrival, answer func(error)) { answer(nil) }, nil},
		"an answer that fails":   {func(_ *store.Session, _ *store.Arrival, answer func(error)) { answer(breaks) }, breaks},
		"who gives up":           {func(ss *store.Session, _ *store.Arrival, _ func(error)) { ss.GiveUp() }, store.ErrClosed},
		"a node that stops":      {func(_ *store.Session, a *store.Arrival, _ func(error)) { a.Release(stops) }, stops},
		"a return":               {func(_ *store.Session, a *store.Arrival, _ func(error)) { a.Release(nil) }, nil},
		"the end of the arrival": {func(_ *store.Session, a *store.Arrival, _ func(error)) { a.End() }, nil},
		"a pull of all":          {func(_ *store.Session, a *store.Arrival, _ func(error)) { a.Pulled(store.Range{First: 0, Last: 100}) }, nil},
		"all of them, and only one": {func(ss *store.Session, a *store.Arrival, answer func(error)) {
			answer(nil)
			ss.GiveUp()
			a.Release(stops)
			a.End()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ss, a, f, told, answer := waitForKey(t)
			c.end(ss, a, answer)
			if <-told; !errors.Is(f.Err(), c.want) {
				t.Errorf("it is told %v, want %v", f.Err(), c.want)
			}
		})
	}
}

func TestWhoWaitsForAKeyIsToldOnceWhoeverEndsIt(t *testing.T) {
	for range 50 {
		ss, a, _, told, answer := waitForKey(t)
		var ends sync.WaitGroup
		for _, end := range []func(){func() { answer(nil) }, ss.GiveUp, func() { a.Release(nil) }, func() { a.Pulled(store.Range{First: 0, Last: 100}) }} {
			ends.Go(end)
		}
		ends.Wait()
		<-told
		a.End()
		ss.GiveUp()
		answer(nil)
		if len(told) > 0 {
			t.Fatal("it is told twice")
		}
	}
}

func TestWhoBeginsToWaitForAKeyAfterItGaveUpIsLetGo(t *testing.T) {
	st, _ := arrivingHalf(t)
	ss := session(t, st)
	ss.Begin()
	k := store.Key{Place: 7, Table: 0, Bytes: []byte("absent")}
	if _, got := ss.Get(&k); got != store.Cold {
		t.Fatal(got)
	}
	ss.End()
	ss.GiveUp()
	if err := ss.Fetch(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("it is told %v", err)
	}
}
