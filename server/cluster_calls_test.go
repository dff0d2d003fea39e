package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
)

// install has the functions for tests on all nodes.
func (w *world) install(names ...string) {
	w.t.Helper()
	code, err := os.ReadFile("call/testdata/calls.wasm")
	w.must(err)
	ctx := patient(w.t)
	for i, name := range names {
		c := w.login(name, "", "")
		if i == 0 {
			w.must(c.FunctionLoad(ctx, "#!wasm name=calls\n"+string(code)).Err())
		}
		await.True(w.t, name+" has the functions", func() bool {
			err := c.Do(ctx, "FCALL_RO", "total", "0").Err()
			if err != nil && !strings.Contains(err.Error(), "not found") {
				w.t.Fatal(err)
			}
			return err == nil
		})
	}
}

// Every call counts once, whatever happens to the nodes meanwhile: ranges move, and one of them dies.
func TestCallsCountOnceWhileRangesMoveAndANodeDies(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	w.install("n1", "n2", "n3")
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 500)
	k := w.countBy(calls, 60, "n1", "n2", "n3")
	k.beyond(300)
	s := w.cache.Snapshot()
	m := w.migrate("n1", "n2", half(s, "n1"), meta.MigrationOptions{})
	if got := w.ended(m.ID); got.Stage != meta.Done {
		t.Fatalf("the migration is %s", got.Stage)
	}
	k.beyond(300)
	w.drop("n3")
	w.await("others in its place", func(s *meta.Snapshot) bool { return len(s.Recoveries) == 0 && len(s.Map.Owners()) == 2 })
	k.beyond(300)
	k.end()
	w.check(w.client("n1", "n2"), 0, 500)
}

func TestFCALLGoesWhereItsKeysAre(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2")
	w.await("copies", copied)
	w.install("n1", "n2")
	ctx := patient(t)
	c := w.client("n1", "n2")
	for i := range 60 {
		w.must(c.FCall(ctx, "put", []string{key(i)}, fmt.Sprint("value ", i)).Err())
	}
	one := w.login("n1", "", "")
	moved := 0
	for i := range 60 {
		if got, err := c.FCallRO(ctx, "look", []string{key(i)}).Text(); err != nil || got != fmt.Sprint("value ", i) {
			t.Fatalf("%s is %q, %v", key(i), got, err)
		}
		got, err := one.FCallRO(ctx, "look", []string{key(i)}).Text()
		switch {
		case err != nil && strings.HasPrefix(err.Error(), "MOVED "):
			moved++
		case err != nil || got != fmt.Sprint("value ", i):
			t.Fatalf("%s is %q, %v", key(i), got, err)
		}
	}
	if moved == 0 || moved == 60 {
		t.Errorf("%d of 60 calls were sent elsewhere", moved)
	}
	if err := one.FCall(ctx, "total", []string{"{a}", "{b}"}).Err(); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT") {
		t.Errorf("keys of several slots: %v", err)
	}
	if n, err := one.FCallRO(ctx, "list", nil, "key:", "4000").Text(); err != nil || len(strings.Fields(n)) != 60-moved {
		t.Errorf("a function lists %d keys of its node, which has %d: %v", len(strings.Fields(n)), 60-moved, err)
	}
}

// A function that takes longer reads on one node and writes after its key has left.
func TestALongCallWhoseKeyLeavesIsRunAgainElsewhere(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2")
	w.await("copies", copied)
	w.install("n1", "n2")
	k := w.countBy(longCalls, 20, "n1", "n2")
	k.beyond(20)
	for _, way := range [][2]view.NodeID{{"n1", "n2"}, {"n2", "n1"}} {
		m := w.migrate(way[0], way[1], half(w.cache.Snapshot(), way[0]), meta.MigrationOptions{})
		if got := w.ended(m.ID); got.Stage != meta.Done {
			t.Fatalf("the migration is %s", got.Stage)
		}
		k.beyond(10)
	}
	k.end()
}

// calls adds one by a function that is short, longCalls by one that is not.
func calls(key []byte) client.Op     { return client.Invoke(0, key, "count", []byte("1")) }
func longCalls(key []byte) client.Op { return client.Invoke(0, key, "count", []byte("60000")) }
