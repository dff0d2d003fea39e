package migrate

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/store"
)

// The ways to get what operations wait for that are there to be compared with batches: each does what it says, and none of it as the
// others do.

func TestSynchronousPriorityPullsFetchOneKeyAfterTheOther(t *testing.T) {
	const n, workers = 200, 4
	var now, most atomic.Int64
	alone := func(keys peer.Handler) peer.Handler {
		return func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			defer now.Add(-1)
			if at := now.Add(1); at > most.Load() {
				most.Store(at)
			}
			return keys(ctx, c)
		}
	}
	p := pullsOf(t, filled(t, n), 1000, 3, meta.MigrationOptions{PriorityPulls: meta.PriorityPullsSync}, func(s *Source, to *peer.Server) {
		s.Handle(to)
		to.HandlePromptly(methodKeys, alone(s.keys))
	})
	var all sync.WaitGroup
	for worker := range workers {
		ss := session(t, p.m.o.Store)
		all.Go(func() {
			for i := worker; i < n+workers; i += workers {
				want := store.OK
				if i >= n {
					want = store.NotFound
				}
				if st := readKey(t, ss, i); st != want {
					t.Errorf("key %d is %s, want %s", i, st, want)
					return
				}
			}
		})
	}
	all.Wait()
	asks, keys := p.m.asks.Load(), p.m.asked.Load()
	if keys != n+workers || asks != keys || most.Load() != 1 {
		t.Errorf("%d keys were asked for in %d messages, %d of them at once; want %d, each alone", keys, asks, most.Load(), n+workers)
	}
}

func TestWithoutPriorityPullsOperationsWaitUntilAPullComesByTheirKey(t *testing.T) {
	const n, readers = 2000, 50
	p := pullsWith(t, filled(t, n), 1000, 3, meta.MigrationOptions{PriorityPulls: meta.PriorityPullsNone})
	var served atomic.Int64
	var all sync.WaitGroup
	for i := n - readers; i < n+readers; i++ { // The last ones are nowhere.
		ss := session(t, p.m.o.Store)
		all.Go(func() {
			want := store.OK
			if i >= n {
				want = store.NotFound
			}
			if st := readKey(t, ss, i); st != want {
				t.Errorf("key %d is %s, want %s", i, st, want)
			}
			served.Add(1)
		})
	}
	ss := session(t, p.m.o.Store)
	ss.Begin()
	k := ss.Key(0, []byte("nowhere"))
	if _, st := ss.Get(&k); st != store.Cold {
		t.Errorf("a key of which nothing is known is %s", st)
	}
	ss.End()
	if served.Load() != 0 {
		t.Errorf("%d operations were served before anything came", served.Load())
	}
	check(t, p.all(t.Context()))
	check(t, p.m.arrival.Finish(t.Context()))
	all.Wait()
	if asks, asked := p.m.asks.Load(), p.m.asked.Load(); asks != 0 || asked != 0 {
		t.Errorf("%d keys were asked for in %d messages", asked, asks)
	}
}
