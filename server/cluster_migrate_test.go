package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

// half is every other sixteenth of what a node owns: several ranges, cut wherever.
func half(s *meta.Snapshot, n view.NodeID) view.Ranges {
	var taken view.Ranges
	for _, r := range s.Map.Ranges(n) {
		step := (r.Last - r.First) / 16
		for i := range 8 {
			first := r.First + step*2*record.Place(i)
			taken = taken.Union(view.RangesOf(view.Range{First: first, Last: first + step - 1}))
		}
	}
	return taken
}

// migrate asks for ranges to be moved.
func (w *world) migrate(from, to view.NodeID, ranges view.Ranges, o meta.MigrationOptions) meta.Migration {
	w.t.Helper()
	m, err := w.meta.Migrate(patient(w.t), meta.MigrationRequest{Source: from, Target: to, Ranges: ranges, Options: o})
	w.must(err)
	return m
}

// ended waits for the end of a migration.
func (w *world) ended(id uint64) meta.Migration {
	w.t.Helper()
	s := w.await(fmt.Sprint("the end of migration ", id), func(s *meta.Snapshot) bool { return s.Migrations[id].Stage.Ended() })
	return s.Migrations[id]
}

// counting adds to counters until it is told to stop, and knows what they must be.
type counting struct {
	t     *testing.T
	c     *client.Client
	n     int
	stop  atomic.Bool
	all   sync.WaitGroup
	sums  []atomic.Int64
	total atomic.Int64
	op    func(key []byte) client.Op // adds one
}

// count begins to add to n counters by a native client, which is never told of an error.
func (w *world) count(n int, names ...string) *counting {
	w.t.Helper()
	return w.countBy(func(key []byte) client.Op { return client.Add(0, key, 1) }, n, names...)
}

// dial is a native client that knows some nodes.
func (w *world) dial(names ...string) *client.Client {
	w.t.Helper()
	s := w.cache.Snapshot()
	var addrs []string
	for _, name := range names {
		addrs = append(addrs, s.Nodes[view.NodeID(name)].Address)
	}
	c, err := client.Dial(patient(w.t), "ostro://"+strings.Join(addrs, ","), client.Options{Retry: testPatience})
	w.must(err)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// countBy counts by an operation of the caller's.
func (w *world) countBy(op func(key []byte) client.Op, n int, names ...string) *counting {
	w.t.Helper()
	c := w.dial(names...)
	k := &counting{t: w.t, c: c, n: n, sums: make([]atomic.Int64, n), op: op}
	for worker := range 4 {
		k.all.Go(func() { k.run(worker) })
	}
	w.t.Cleanup(func() {
		k.stop.Store(true)
		k.all.Wait()
	})
	return k
}

func counter(i int) []byte { return []byte(fmt.Sprint("counter:", i)) }

func (k *counting) run(worker int) {
	for round := 0; !k.stop.Load(); round++ {
		i := (round*31 + worker*17) % k.n
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		got, err := k.c.Do(ctx, k.op(counter(i)))
		cancel()
		if err != nil {
			k.t.Errorf("add to %s: %v", counter(i), err)
			return
		}
		k.sums[i].Add(1)
		k.total.Add(1)
		if round%7 == 0 && got.Int() <= 0 {
			k.t.Errorf("%s is %d after an addition", counter(i), got.Int())
		}
	}
}

// beyond waits until so many more were counted.
func (k *counting) beyond(more int64) {
	want := k.total.Load() + more
	await.True(k.t, "more was counted", func() bool { return k.total.Load() >= want || k.t.Failed() })
}

// end stops counting, and finds all that was counted, once.
func (k *counting) end() {
	k.t.Helper()
	k.stop.Store(true)
	k.all.Wait()
	for i := range k.n {
		got, err := k.c.Get(patient(k.t), 0, counter(i)).Wait()
		if errors.Is(err, client.ErrNotFound) && k.sums[i].Load() == 0 {
			continue
		}
		if err != nil || got.Int() != k.sums[i].Load() {
			k.t.Fatalf("%s is %d, not %d (%v)", counter(i), got.Int(), k.sums[i].Load(), err)
		}
	}
}

func TestRangesMoveUnderLoadAndNobodyNoticesButThroughTheMap(t *testing.T) {
	for _, when := range []string{meta.OwnershipEarly, meta.OwnershipLate} {
		t.Run(when, func(t *testing.T) { moveUnderLoad(t, meta.MigrationOptions{Ownership: when}) })
	}
}

func moveUnderLoad(t *testing.T, o meta.MigrationOptions) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 3000)
	k := w.count(200, "n1", "n2", "n3")
	k.beyond(200)
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), o)
	w.check(c, 0, 1500)
	if m = w.ended(m.ID); m.Stage != meta.Done || m.Records == 0 {
		t.Fatalf("the migration ended as %+v", m)
	}
	if late := o.Ownership == meta.OwnershipLate; (m.Closed > 0) == late || m.Closed > m.Ended.Sub(m.Requested) {
		t.Errorf("nobody served for %v, it says", m.Closed)
	}
	w.check(c, 1500, 3000)
	k.beyond(200)
	k.end()
	s := w.cache.Snapshot()
	if !s.Map.Ranges("n2").Covers(m.Ranges) || len(s.Map.Ranges("n1").Intersect(m.Ranges)) > 0 {
		t.Fatalf("%s is not where it was moved to", m.Ranges)
	}
	w.await("the source drops what left it", func(s *meta.Snapshot) bool { return len(s.Leaving("n1")) == 0 })
	w.check(c, 0, 3000)
}

func TestAllWaysToMoveLoseNothing(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 1000)
	k := w.count(200, "n1", "n2", "n3")
	to, from := view.NodeID("n2"), view.NodeID("n1")
	share := half(w.cache.Snapshot(), from)
	for _, o := range []meta.MigrationOptions{
		{Ownership: meta.OwnershipLate}, {PriorityPulls: meta.PriorityPullsSync}, {PriorityPulls: meta.PriorityPullsNone}, {Sample: true},
	} {
		m := w.migrate(from, to, share, o)
		w.check(c, 0, 1000)
		if m = w.ended(m.ID); m.Stage != meta.Done {
			t.Fatalf("%+v ended as %+v", o, m)
		}
		k.beyond(100)
		from, to = to, from // And back.
	}
	k.end()
	w.check(c, 0, 1000)
}

func TestWhatIsCancelledGoesBackWithAllThatWasWritten(t *testing.T) {
	w := newWorld(t)
	w.halt = map[string]string{"n2": "pulled"}
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 1000)
	k := w.count(200, "n1", "n2", "n3")
	k.beyond(100)
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
	w.halted(m.ID, "pulled")
	k.beyond(300)
	w.write(c, 1000, 1500)
	w.must(w.meta.CancelMigration(patient(t), m.ID))
	if m = w.ended(m.ID); m.Stage != meta.Cancelled {
		t.Fatalf("the migration ended as %+v", m)
	}
	if s := w.cache.Snapshot(); !s.Map.Ranges("n1").Covers(m.Ranges) {
		t.Fatalf("%s is not back", m.Ranges)
	}
	k.beyond(100)
	k.end()
	w.check(c, 0, 1500)
	w.await("the target drops what it had", func(s *meta.Snapshot) bool { return len(s.Leaving("n2")) == 0 })
	w.check(c, 0, 1500)
}

// halted waits until a migration has come to a step.
func (w *world) halted(id uint64, at migrate.Step) {
	w.t.Helper()
	w.await(fmt.Sprint("migration ", id, " halts at ", at), func(s *meta.Snapshot) bool {
		return at == migrate.Completed && s.Migrations[id].Stage == meta.Done || strings.HasSuffix(s.Moves[id].Waiting, string(at))
	})
}

func TestWhoeverDiesAtWhateverStepNothingIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, victim := range []string{"n1", "n2"} {
		for _, n := range random.Perm(len(migrate.Steps))[:steps(t)] {
			step := migrate.Steps[n]
			t.Run(fmt.Sprintf("%s dies at %s", map[string]string{"n1": "source", "n2": "target"}[victim], step), func(t *testing.T) {
				dieAt(t, victim, step, meta.MigrationOptions{Sample: step == migrate.AfterSample})
			})
		}
	}
}

func TestWhoeverDiesBeforeAnythingHasChangedHandsNothingIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, victim := range []string{"n1", "n2"} {
		for _, n := range random.Perm(len(migrate.LateSteps))[:min(steps(t), len(migrate.LateSteps))] {
			step := migrate.LateSteps[n]
			t.Run(fmt.Sprintf("%s dies at %s", map[string]string{"n1": "source", "n2": "target"}[victim], step), func(t *testing.T) {
				dieAt(t, victim, step, meta.MigrationOptions{Ownership: meta.OwnershipLate})
			})
		}
	}
}

// steps is how many of a migration's steps a run looks at, others each time; with OSTRO_HARMS=all, all of them.
func steps(t *testing.T) int {
	switch {
	case os.Getenv("OSTRO_HARMS") == "all":
		return len(migrate.Steps)
	case testing.Short():
		return 1
	}
	return 3
}

// dieAt kills a node of a migration that has come to a step, and brings it back.
func dieAt(t *testing.T, victim string, step migrate.Step, o meta.MigrationOptions) {
	w := newWorld(t)
	w.halt = map[string]string{"n2": string(step)}
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 500)
	k := w.count(100, "n1", "n2", "n3")
	k.beyond(100)
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), o)
	w.halted(m.ID, step)
	w.drop(victim)
	w.halt = nil
	w.await("the death is over", func(s *meta.Snapshot) bool {
		return settled(s) && !s.IsAlive(view.NodeID(victim)) && s.Migrations[m.ID].Stage.Ended()
	})
	k.beyond(100)
	c = w.client(w.all()...)
	w.check(c, 0, 500)
	w.start(victim)
	w.await("it is back", func(s *meta.Snapshot) bool { return settled(s) && s.IsAlive(view.NodeID(victim)) })
	k.beyond(100)
	k.end()
	w.check(c, 0, 500)
	w.until("nobody expects anything any more", func() bool {
		for _, n := range w.nodes {
			if e := n.Engine(); e == nil || e.Metrics().Expected != 0 { // One that begins anew has none for a moment.
				return false
			}
		}
		return true
	})
}
