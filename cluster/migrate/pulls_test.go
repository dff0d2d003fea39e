package migrate

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/store"
)

// readKey looks for the i-th key of filled, and waits as front doors do.
func readKey(t *testing.T, ss *store.Session, i int) store.Status {
	t.Helper()
	return getKey(t, ss, string(nthKey(i)))
}

// nthKey is the i-th key of filled.
func nthKey(i int) []byte {
	key := make([]byte, 30)
	binary.LittleEndian.PutUint64(key, uint64(i)*0x9E3779B97F4A7C15)
	return key
}

// getKey is readKey of any key.
func getKey(t *testing.T, ss *store.Session, key string) store.Status {
	t.Helper()
	for {
		ss.Begin()
		k := ss.Key(0, []byte(key))
		_, st := ss.Get(&k)
		ss.End()
		if st != store.Cold {
			return st
		}
		check(t, ss.Fetch(t.Context()))
	}
}

func session(t *testing.T, st *store.Store) *store.Session {
	t.Helper()
	ss, err := st.NewSession()
	check(t, err)
	t.Cleanup(ss.Close)
	return ss
}

func TestAllRecordsComeByPulls(t *testing.T) {
	for name, shared := range map[string]bool{"through memory": true, "over the wire": false} {
		t.Run(name, func(t *testing.T) {
			const n = 5000
			p := pullsBetween(t, filled(t, n), 1000, 3)
			p.m.o.SharedMemory = shared
			check(t, p.all(t.Context()))
			if got := p.m.records.Load(); got != n {
				t.Errorf("%d of %d records came", got, n)
			}
			want := int64(0)
			if shared {
				want = p.m.bytes.Load()
			}
			if got := p.m.landed.Load(); got != want {
				t.Errorf("%d of %d bytes came through memory, want %d", got, p.m.bytes.Load(), want)
			}
			allPulled(t, p, n)
		})
	}
}

func TestOperationsGetWhatTheyWaitForBeforeAllElse(t *testing.T) {
	const n = 300
	p := pullsBetween(t, filled(t, n), 1000, 3)
	var all sync.WaitGroup
	for worker := range 4 {
		ss := session(t, p.m.o.Store)
		all.Go(func() {
			for i := range n {
				if st := readKey(t, ss, i); st != store.OK {
					t.Errorf("worker %d: key %d is %s", worker, i, st)
					return
				}
			}
			for i := n; i < n+50; i++ {
				if st := readKey(t, ss, i); st != store.NotFound {
					t.Errorf("worker %d: key %d, which is nowhere, is %s", worker, i, st)
					return
				}
			}
		})
	}
	all.Wait()
	if asked := p.m.asked.Load(); asked != n+50 {
		t.Errorf("%d keys were asked for, there are %d", asked, n+50)
	}
}

func TestASourceThatIsGoneForAWhileIsAskedAgain(t *testing.T) {
	const n = 2000
	var p *pulls
	var once sync.Once
	breaking := func(pull peer.Handler) peer.Handler { // Half-way a pull is not answered.
		return func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			if p.m.records.Load() >= n/2 {
				once.Do(func() { p.m.o.Peers.Drop("source") })
			}
			return pull(ctx, c)
		}
	}
	p = pullsOf(t, filled(t, n), 1000, 3, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
		s.Handle(to)
		to.HandleQuietly(methodPull, breaking(s.pull))
		to.HandleQuietly(methodPullInto, breaking(s.pullInto))
	})
	failures := 0
	for p.all(t.Context()) != nil {
		if failures++; failures > 10 {
			t.Fatal("it never ends")
		}
	}
	if failures == 0 {
		t.Error("nobody noticed that connections were lost")
	}
	ss := session(t, p.m.o.Store)
	for i := range n {
		if st := readKey(t, ss, i); st != store.OK {
			t.Fatalf("key %d is %s", i, st)
		}
	}
}

// allPulled checks that keys are there, and that none had to be asked for.
func allPulled(t *testing.T, p *pulls, keys int) {
	t.Helper()
	ss := session(t, p.m.o.Store)
	for i := range keys {
		if st := readKey(t, ss, i); st != store.OK {
			t.Fatalf("key %d is %s", i, st)
		}
	}
	if p.m.asked.Load() != 0 {
		t.Errorf("%d keys were asked for though all were there", p.m.asked.Load())
	}
}
