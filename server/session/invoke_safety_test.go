package session_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/tenant/sched"
)

func TestARetryStormOfInvocationsSumsUpExactly(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	st := openStore(t, store.Options{})
	// Who hangs up owes for its calls, and the next ones wait for their turns: for longer than usual on a busy machine.
	srv, addr := serve(t, st, withScheduled(t, st, session.Options{}, sched.Options{Deadline: time.Hour}))
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	const clients, callers, each, counters = 2, 4, 30, 3
	var sums [counters]atomic.Int64
	var all sync.WaitGroup
	for range clients {
		c := dial(t, "ostro://"+addr, client.Options{Workers: 2, Dial: dialer(func(n int, c *cutConn) {
			mu.Lock()
			defer mu.Unlock()
			if n > 1 { // Long enough for a hello, and some batches.
				c.write, c.read = 60+random.IntN(2000), 60+random.IntN(2000)
			}
		})})
		for i := range callers {
			all.Go(func() {
				for j := range each {
					n := (i + j) % counters
					if _, err := c.Do(t.Context(), client.Invoke(0, fmt.Append(nil, "counter", n), "count", b([]string{shortWork, longWork}[j%2]))); err != nil {
						t.Error(err)
						return
					}
					sums[n].Add(1)
				}
			})
		}
	}
	all.Wait()
	c := dial(t, "ostro://"+addr, client.Options{})
	for n := range sums {
		r, err := c.Do(t.Context(), client.Get(0, fmt.Append(nil, "counter", n)))
		if err != nil || r.Int() != sums[n].Load() {
			t.Errorf("counter %d is %d, want %d, %v", n, r.Int(), sums[n].Load(), err)
		}
	}
	if m := srv.Metrics(); m.Repeated == 0 {
		t.Errorf("no call was ever sent twice after it had run: %+v", m)
	}
}

// counted is an operation on a counter: it is added to, or looked at.
type counted struct {
	key  int
	adds bool
}

// counters is what counters do.
var counters = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, out any) (bool, any) {
		n := state.(int64)
		if in.(counted).adds {
			n++
		}
		return n == out.(int64), n
	},
}

func TestFunctionsAreLinearizableWhileOwnershipMoves(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := newWorld(t, store.Options{}, withFunctions(t, openStore(t, store.Options{}), session.Options{}), "a", "b")
	const keys, callers, each = 2, 6, 60
	began := time.Now()
	histories := make([][]porcupine.Operation, keys)
	var mu sync.Mutex
	var all sync.WaitGroup
	var stop atomic.Bool
	var done atomic.Int64
	for i := range callers {
		c := dial(t, w.seeds(), client.Options{})
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for range each {
				in := counted{random.IntN(keys), random.IntN(3) > 0}
				op := client.Invoke(0, fmt.Append(nil, "n", in.key), "total")
				if in.adds {
					op = client.Invoke(0, fmt.Append(nil, "n", in.key), "count", b([]string{shortWork, longWork}[random.IntN(2)]))
				}
				from := time.Since(began)
				r, err := c.Do(context.Background(), op)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				histories[in.key] = append(histories[in.key], porcupine.Operation{
					ClientId: i, Input: in, Call: int64(from), Output: r.Int(), Return: int64(time.Since(began)),
				})
				mu.Unlock()
				done.Add(1)
			}
		})
	}
	var moving sync.WaitGroup
	moving.Go(func() {
		to := []view.NodeID{"a", "b"}
		for i := 0; !stop.Load(); i++ {
			before := done.Load()
			w.move(view.RangesOf(view.Whole), to[i%2])
			await.Comes(func() bool { return done.Load() > before || stop.Load() }) // Where all moves all the time, nothing else happens.
		}
	})
	all.Wait()
	stop.Store(true)
	moving.Wait()
	for key, h := range histories {
		if !porcupine.CheckOperations(counters, h) { // There is one order of additions at most, and it is found at once.
			t.Errorf("counter %d: no order of %d operations explains their answers", key, len(h))
		}
	}
}

func TestKeysOfOtherNodesAreElsewhereForAFunction(t *testing.T) {
	w := newWorld(t, store.Options{}, withFunctions(t, openStore(t, store.Options{}), session.Options{}), "a", "b")
	of := map[view.NodeID][]byte{}
	for i := 0; len(of) < 2; i++ {
		k := fmt.Append(nil, "k", i)
		for id, n := range w.nodes {
			if n.gate.Routing().Owned.Contains(placeOf(k)) {
				of[id] = k
			}
		}
	}
	c := dial(t, w.seeds(), client.Options{})
	for _, s := range []struct {
		keys [][]byte
		want string
	}{
		{[][]byte{of["a"], of["b"]}, "function total: returned error code 2"},
		{[][]byte{of["b"], of["a"]}, "function total: returned error code 2"},
		{[][]byte{of["a"], of["a"]}, ""},
		{[][]byte{of["b"], of["b"]}, ""},
	} {
		_, err := c.Do(t.Context(), client.InvokeKeys(0, s.keys, "total"))
		if (err != nil) != (s.want != "") || err != nil && !strings.Contains(err.Error(), s.want) {
			t.Errorf("%q: %v, want %q", s.keys, err, s.want)
		}
	}
	// A write elsewhere is refused whole.
	if _, err := c.Do(t.Context(), client.InvokeKeys(0, [][]byte{of["a"], of["b"]}, "mess", b("nothing"))); err == nil {
		t.Error("a function wrote to another node's key")
	}
	if _, err := c.Do(t.Context(), client.Get(0, of["a"])); err == nil {
		t.Error("half of what it wrote was applied")
	}
}

func placeOf(key []byte) record.Place { return record.PlaceOf(0, key) }

func TestAnInvocationIsAnsweredAgainAsItWas(t *testing.T) {
	st := openStore(t, store.Options{})
	_, addr := serve(t, st, withFunctions(t, st, session.Options{}))
	for _, work := range []string{shortWork, longWork} {
		var times atomic.Int64
		c := dial(t, "ostro://"+addr, client.Options{Dial: dialer(func(n int, c *cutConn) {
			if n == 2 {
				c.read = 200 // Enough for the welcome, and not for the answers.
			}
			times.Add(1)
		})})
		for i := range 10 {
			r, err := c.Do(t.Context(), client.Invoke(0, b("again"+work), "count", b(work)))
			if err != nil || binary.LittleEndian.Uint64(r.Value) != uint64(i+1) {
				t.Fatalf("call %d: %v %v", i, r, err)
			}
		}
		if times.Load() < 3 {
			t.Errorf("the connection was never cut")
		}
	}
}
