package server_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
)

// caller calls functions as one tenant through one node, which forwards what is not its own.
type caller struct {
	name  string
	c     *redis.Client
	made  [20]atomic.Int64
	total atomic.Int64
}

func (k *caller) run(t *testing.T, stop *atomic.Bool) {
	for i := 0; !stop.Load(); i++ {
		n := i * 7 % len(k.made)
		work := "1"
		if i%16 == 0 {
			work = "60000" // It does not end within a first try.
		}
		if err := k.c.FCall(patient(t), "count", []string{string(counter(n))}, work).Err(); err != nil {
			t.Errorf("%s: %v", k.name, err)
			return
		}
		k.made[n].Add(1)
		k.total.Add(1)
	}
}

// Tenants who know one node only call functions while ranges move between the nodes: no call fails, each counts
// once, and for its own tenant.
func TestTenantsCallFunctionsThroughProxiesWhileRangesMove(t *testing.T) {
	w := newWorld(t)
	w.password, w.proxy = "operator", true
	w.start("n1", "n2")
	w.await("copies", copied)
	ctx := patient(t)
	code, err := os.ReadFile("call/testdata/calls.wasm")
	w.must(err)
	operator := w.login("n1", "", "operator")
	var callers []*caller
	for i, name := range []string{"anna", "bert"} {
		w.must(operator.Do(ctx, "tenant", "create", name, "password", name, "connections", "8").Err())
		w.must(operator.Do(ctx, "tenant", "function", name, "load", "#!wasm name=calls\n"+string(code)).Err())
		node := []string{"n1", "n2"}[i]
		for _, node := range []string{"n1", "n2"} {
			c := w.login(node, name, name)
			await.True(t, fmt.Sprint(node, " has the functions of ", name), func() bool { return c.Do(ctx, "FCALL_RO", "total", "0").Err() == nil })
		}
		c := redis.NewClient(&redis.Options{Addr: w.nodes[node].Addr(), Username: name, Password: name, MaxRetries: -1, ReadTimeout: 50 * time.Second})
		t.Cleanup(func() { _ = c.Close() })
		callers = append(callers, &caller{name: name, c: c})
	}
	var stop atomic.Bool
	var all sync.WaitGroup
	for _, k := range callers {
		for range 2 {
			all.Go(func() { k.run(t, &stop) })
		}
	}
	t.Cleanup(func() { stop.Store(true); all.Wait() })
	goOn := func() {
		for _, k := range callers {
			from := k.total.Load()
			await.True(t, k.name+" goes on", func() bool { return k.total.Load() > from+60 || t.Failed() })
		}
	}
	goOn()
	for _, way := range [][2]view.NodeID{{"n1", "n2"}, {"n2", "n1"}, {"n1", "n2"}} {
		m := w.migrate(way[0], way[1], half(w.cache.Snapshot(), way[0]), meta.MigrationOptions{})
		if got := w.ended(m.ID); got.Stage != meta.Done {
			t.Fatalf("the migration is %s", got.Stage)
		}
		goOn()
	}
	stop.Store(true)
	all.Wait()
	for _, k := range callers {
		for n := range k.made {
			got, err := k.c.Get(patient(t), string(counter(n))).Bytes()
			if want := uint64(k.made[n].Load()); err != nil || binary.LittleEndian.Uint64(got) != want {
				t.Errorf("%s: counter %d is %v after %d calls, %v", k.name, n, got, want, err)
			}
		}
	}
	if n := operator.DBSize(ctx).Val(); n != 0 {
		t.Errorf("the operator has %d keys", n)
	}
}

// Who knows one node only flushes all of them while ranges go from node to node: nothing that was there before is left.
func TestAFlushThroughAProxyLeavesNothingWhileRangesMove(t *testing.T) {
	w := newWorld(t)
	w.proxy = true
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := redis.NewClient(&redis.Options{Addr: w.nodes["n3"].Addr(), MaxRetries: -1, ReadTimeout: 50 * time.Second})
	t.Cleanup(func() { _ = c.Close() })
	moving := w.cache.Snapshot().Map.Ranges("n1")
	from, to := view.NodeID("n1"), view.NodeID("n2")
	for round := range 20 {
		ctx := patient(t)
		var pairs []any
		for i := range 300 {
			pairs = append(pairs, fmt.Sprint("key", i), round)
		}
		w.must(c.MSet(ctx, pairs...).Err())
		ownership := []string{meta.OwnershipEarly, meta.OwnershipLate}[round/2%2]
		m := w.migrate(from, to, moving, meta.MigrationOptions{Ownership: ownership})
		if round%2 == 0 { // Else it may come before all of it.
			w.await("the beginning", func(s *meta.Snapshot) bool { return s.Migrations[m.ID].Stage != meta.Wanted })
		}
		if err := c.FlushAll(ctx).Err(); err != nil {
			t.Fatalf("FLUSHALL of round %d: %v", round, err)
		}
		if m = w.ended(m.ID); m.Stage != meta.Done {
			t.Fatalf("migration %d is %s: %s", m.ID, m.Stage, m.Why)
		}
		left, err := c.Keys(ctx, "*").Result()
		if w.must(err); len(left) > 0 {
			t.Fatalf("%d keys are left in round %d, %s among them", len(left), round, left[0])
		}
		from, to = to, from
	}
}
