package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/wire"
)

// TestNobodyExecutesInAViewThatIsOver moves ranges to and fro under load. A merge function of
// each node's own checks that the key is the node's, which is so by the node's view until a cut
// has passed.
func TestNobodyExecutesInAViewThatIsOver(t *testing.T) {
	for name, check := range map[string]session.Check{"by views": session.ByViews, "by keys": session.ByKeys} {
		t.Run(name, func(t *testing.T) { nobodyExecutesInAViewThatIsOver(t, check) })
	}
}

func nobodyExecutesInAViewThatIsOver(t *testing.T, check session.Check) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var wrong atomic.Int64
	merge := func(n *worldNode) session.Merge {
		return func(dst, old []byte, exists bool, operand []byte) ([]byte, error) {
			if !n.may.Load().Contains(record.Place(binary.LittleEndian.Uint64(operand))) {
				wrong.Add(1)
			}
			sum := int64(1)
			if exists {
				sum += int64(binary.LittleEndian.Uint64(old))
			}
			return append(dst, number(sum)...), nil
		}
	}
	w := newWorldWith(t, store.Options{Dir: t.TempDir(), Durability: store.EverySec, SegmentBytes: 1 << 20}, session.Options{Check: check}, merge, "a", "b", "c")
	c := dial(t, w.seeds(), client.Options{Workers: 2})
	stopMoving := make(chan struct{})
	var moving sync.WaitGroup
	moves := 0
	moving.Go(func() {
		for {
			select {
			case <-stopMoving:
				return
			case <-time.After(time.Duration(random.IntN(3000)) * time.Microsecond):
			}
			first := record.Place(random.Uint64())
			last := max(first, record.Place(random.Uint64()))
			w.move(view.RangesOf(view.Range{First: first, Last: last}), []view.NodeID{"a", "b", "c"}[random.IntN(3)])
			moves++
		}
	})
	const keys, each = 50, 60
	var all sync.WaitGroup
	for k := range keys {
		all.Go(func() {
			key := fmt.Append(nil, "key", k)
			operand := number(int64(record.PlaceOf(0, key)))
			for range each {
				if _, err := c.Do(t.Context(), client.Merge(0, key, "mine", operand)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	close(stopMoving)
	moving.Wait()
	for k := range keys {
		if r, err := c.Do(t.Context(), client.Get(0, fmt.Append(nil, "key", k))); err != nil || r.Int() != each {
			t.Fatalf("key%d is %d after %d merges, %v", k, r.Int(), each, err)
		}
	}
	stats := c.Stats()
	t.Logf("%d moves, %+v", moves, stats)
	if wrong.Load() > 0 {
		t.Fatalf("%d operations were executed by nodes that did not own their keys", wrong.Load())
	}
	if stats.Retries == 0 {
		t.Fatal("nothing was ever sent to a node that did not own it: the test tests nothing")
	}
}

func TestABatchInTheWrongViewIsRejectedWholeAndGoesToTheOwner(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{}, "a", "b")
	c := dial(t, w.seeds(), client.Options{})
	run(t, c, []step{{op: client.Put(0, []byte("k"), []byte("v"))}})
	for _, to := range []view.NodeID{"a", "b", "a"} {
		w.move(view.RangesOf(view.Whole), to)
		run(t, c, []step{
			{op: client.Get(0, []byte("k")), value: "v"},
			{op: client.Put(0, []byte("k"), []byte("v"))},
		})
	}
	if s := c.Stats(); s.Stale == 0 || s.Refreshes < 3 {
		t.Fatalf("%+v", s)
	}
}

// soon are options of clients that give up soon. They do so on a busy machine, too: what is to succeed is done by others.
var soon = client.Options{Retry: 200 * time.Millisecond}

func TestNothingIsAnsweredOnceTheLeaseIsOver(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{}, "a")
	c, hasty := dial(t, w.seeds(), client.Options{}), dial(t, w.seeds(), soon)
	run(t, c, []step{{op: client.Put(0, []byte("k"), []byte("v"))}})
	w.nodes["a"].gate.die()
	if _, err := hasty.Do(t.Context(), client.Get(0, []byte("k"))); !errors.Is(err, client.ErrUnavailable) {
		t.Fatalf("a read got %v", err)
	}
	if _, err := hasty.Do(t.Context(), client.Put(0, []byte("k"), []byte("w"))); !errors.Is(err, client.ErrUnavailable) && !errors.Is(err, client.ErrUnknownOutcome) {
		t.Fatalf("a write got %v", err)
	}
	w.nodes["a"].gate.dead.Store(false)
	run(t, c, []step{{op: client.Get(0, []byte("k")), value: "v"}})
}

func TestALeaseThatEndsWhileABatchIsExecutedKeepsItsResultsBack(t *testing.T) {
	gate := &testGate{changed: make(chan struct{})}
	gate.routing.Store(session.Alone().Routing())
	var executed atomic.Int64
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{Gate: gate, Merges: map[string]session.Merge{
		"die": func(dst, _ []byte, _ bool, operand []byte) ([]byte, error) {
			executed.Add(1)
			gate.dead.Store(true)
			return append(dst, operand...), nil
		},
	}})
	c, hasty := dial(t, "ostro://"+addr, client.Options{}), dial(t, "ostro://"+addr, soon)
	if _, err := hasty.Do(t.Context(), client.Merge(0, []byte("k"), "die", []byte("v"))); !errors.Is(err, client.ErrUnknownOutcome) {
		t.Fatalf("executed %d times and answered %v", executed.Load(), err)
	}
	await.True(t, "it is executed", gate.dead.Load)
	gate.dead.Store(false)
	run(t, c, []step{{op: client.Get(0, []byte("k")), value: "v"}}) // It had happened.
}

func TestOperationsOnArrivingRecordsWaitAndOthersDoNot(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{}, "a")
	half := view.RangesOf(view.Range{First: 1 << 63, Last: view.Whole.Last})
	var here, arriving []byte
	for i := 0; here == nil || arriving == nil; i++ {
		key := fmt.Append(nil, "key", i)
		if half.Contains(record.PlaceOf(0, key)) {
			arriving = key
		} else {
			here = key
		}
	}
	w.show("a", half)
	c := dial(t, w.seeds(), client.Options{})
	ctx := t.Context()
	waits := []*client.Future{
		c.Put(ctx, 0, arriving, []byte("v")),
		c.Go(ctx, client.Add(0, append(arriving[:len(arriving):len(arriving)], 'x'), 0)), // Perhaps not among them.
	}
	run(t, c, []step{{op: client.Put(0, here, []byte("v"))}, {op: client.Get(0, here), value: "v"}})
	multi := make(chan error, 1)
	go func() {
		values, err := c.MultiGet(ctx, 0, [][]byte{here, arriving})
		if err == nil {
			err = errors.Join(values[0].Err, values[1].Err)
		}
		multi <- err
	}()
	await.True(t, "the operations wait", func() bool { return w.nodes["a"].srv.Metrics().Waited >= 2 })
	select {
	case <-waits[0].Done():
		t.Fatal("the put did not wait for its records")
	case err := <-multi:
		t.Fatalf("the multi-get did not wait for its records: %v", err)
	default:
	}
	w.show("a", nil)
	for _, f := range waits {
		if _, err := f.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-multi; err != nil && !errors.Is(err, client.ErrNotFound) {
		t.Fatal(err)
	}
	run(t, c, []step{{op: client.Get(0, arriving), value: "v"}})
}

func TestAnOperationThatWaitedMovesWithItsRange(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{}, "a", "b")
	w.move(view.RangesOf(view.Whole), "a")
	w.show("a", view.RangesOf(view.Whole))
	c := dial(t, w.seeds(), client.Options{})
	f := c.Put(t.Context(), 0, []byte("k"), []byte("v"))
	await.True(t, "the put waits", func() bool { return w.nodes["a"].srv.Metrics().Waited == 1 })
	w.move(view.RangesOf(view.Whole), "b")
	if _, err := f.Wait(); err != nil {
		t.Fatal(err)
	}
	if m := w.nodes["a"].srv.Metrics(); m.Moved != 1 {
		t.Fatalf("%+v", m)
	}
	await.True(t, "nothing waits any more", func() bool { return w.nodes["a"].srv.Metrics().Waiting == 0 })
}

func TestAnOperationWaitsOnlySoLong(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{WaitLimit: 50 * time.Millisecond}, "a")
	w.show("a", view.RangesOf(view.Whole))
	raw := rawSession(t, w.nodes["a"].addr)
	if err := greetRaw(raw); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if r, err := tell(raw, wire.Batch{Client: 1}, wire.Op{Code: wire.OpPut, Key: []byte("k")}); err != nil || r.Status != wire.Busy {
			t.Fatalf("the server says %s %q, %v", r.Status, r.Value, err)
		}
	}
	c := dial(t, w.seeds(), soon)
	if _, err := c.Do(t.Context(), client.Get(0, []byte("k"))); !errors.Is(err, client.ErrUnavailable) {
		t.Fatal(err)
	}
}

func TestWhatWaitsForRecordsIsLookedAtNowAndThenOnly(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{WaitLimit: 500 * time.Millisecond}, "a")
	w.show("a", view.RangesOf(view.Whole))
	c := dial(t, w.seeds(), client.Options{Retry: time.Second})
	_, err := c.Do(t.Context(), client.Put(0, []byte("k"), nil))
	if !errors.Is(err, client.ErrUnavailable) && !errors.Is(err, client.ErrUnknownOutcome) { // The last answer may be late.
		t.Fatal(err)
	}
	if m := w.nodes["a"].srv.Metrics(); m.Rounds > 100 {
		t.Errorf("%d rounds for an operation that waited", m.Rounds)
	}
}

// silentPuller is the source of a migration that has stopped to answer.
type silentPuller struct{}

func (silentPuller) Want([]store.ArrivingKey, func(error)) {}

// Its client tries again, and finds who has the keys by then.
func TestWhoWaitsForAKeyAtANodeThatStopsIsNotToldOfAFault(t *testing.T) {
	w := newWorld(t, store.Options{Cluster: true}, session.Options{}, "a")
	a, err := w.st.Arrive(store.ArriveOptions{
		Ranges: []store.Range{{First: 0, Last: view.Whole.Last}}, Ceiling: 7, Puller: silentPuller{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.End()
	c := dial(t, w.seeds(), soon)
	get := c.Get(t.Context(), 0, []byte("k"))
	await.True(t, "it waits", func() bool { return w.nodes["a"].srv.Metrics().Waiting == 1 })
	a.Release(store.ErrStopping)
	if _, err := get.Wait(); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("the client is told %v", err)
	}
}

func TestAScanOfWhatIsReturnedWaitsOnlySoLong(t *testing.T) {
	w := newWorld(t, store.Options{Cluster: true}, session.Options{WaitLimit: 50 * time.Millisecond}, "a")
	a, err := w.st.Arrive(store.ArriveOptions{
		Ranges: []store.Range{{First: 0, Last: view.Whole.Last}}, Ceiling: 7, Puller: silentPuller{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.End()
	a.Release(nil)
	c := dial(t, w.seeds(), soon)
	for _, err = range c.Scan(t.Context(), 0, client.ScanOptions{}) {
	}
	if !errors.Is(err, client.ErrUnavailable) {
		t.Error(err)
	}
	await.True(t, "nothing waits any more", func() bool { return w.nodes["a"].srv.Metrics().Waiting == 0 })
}

func TestAScanGoesOverAllNodesWhileRangesMove(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{}, "a", "b", "c")
	c := dial(t, w.seeds(), client.Options{})
	want := map[string]bool{}
	var puts []*client.Future
	for i := range 2000 {
		key := fmt.Sprint("key", i)
		want[key] = true
		puts = append(puts, c.Put(t.Context(), 0, []byte(key), nil))
	}
	for _, f := range puts {
		if _, err := f.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	n := 0
	for rec, err := range c.Scan(t.Context(), 0, client.ScanOptions{Page: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		got[string(rec.Key)] = true
		if n++; n%400 == 0 && n < 4000 {
			w.move(view.RangesOf(view.Range{First: record.Place(n) << 52, Last: view.Whole.Last}), []view.NodeID{"a", "b", "c"}[n/400%3])
		}
	}
	for k := range want {
		if !got[k] {
			t.Fatalf("%s was not shown", k)
		}
	}
}

func TestManyKeysGoToAllTheirOwners(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{}, "a", "b", "c")
	c := dial(t, w.seeds(), client.Options{})
	var keys [][]byte
	var entries []client.Entry
	for i := range 300 {
		keys = append(keys, fmt.Append(nil, "key", i))
		entries = append(entries, client.Entry{Key: keys[i], Value: keys[i]})
	}
	for round := range 3 {
		if err := c.MultiPut(t.Context(), 0, entries...); err != nil {
			t.Fatal(err)
		}
		w.move(view.RangesOf(view.Range{First: record.Place(round) << 62, Last: view.Whole.Last}), "b")
		values, err := c.MultiGet(t.Context(), 0, keys)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if v.Err != nil || string(v.Value) != string(keys[i]) {
				t.Fatalf("%s is %q, %v", keys[i], v.Value, v.Err)
			}
		}
	}
	for id, n := range w.nodes {
		if id != "b" && n.srv.Metrics().Operations == 0 {
			t.Fatalf("node %s was never asked", id)
		}
	}
}

func TestAContextThatEndsEndsTheWait(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{}, "a")
	w.show("a", view.RangesOf(view.Whole))
	c := dial(t, w.seeds(), client.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Do(ctx, client.Get(0, []byte("k"))); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, 0, []byte("k")).Wait(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}
