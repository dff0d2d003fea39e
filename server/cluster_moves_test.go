package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/port"
)

// halting is a cluster whose migrations halt where haltAt says.
func halting(t *testing.T, names ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.startHalting(names...)
	return w
}

func (w *world) startHalting(names ...string) {
	w.t.Helper()
	w.halts = w.t.TempDir()
	w.start(names...)
	w.await("copies", copied)
}

// haltAt has everybody halt who comes to a step, until goOn.
func (w *world) haltAt(s migrate.Step) {
	w.t.Helper()
	w.must(os.WriteFile(filepath.Join(w.halts, string(s)), nil, 0o600))
}

// goOn lets everybody go on who halts.
func (w *world) goOn() {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.halts, "*"))
	w.must(err)
	for _, name := range names {
		w.must(os.Remove(name))
	}
}

// done waits for migrations, and finds that they have come to their ends.
func (w *world) done(ids ...uint64) {
	w.t.Helper()
	for _, id := range ids {
		if m := w.ended(id); m.Stage != meta.Done {
			w.t.Fatalf("migration %d ended as %s: %s", id, m.Stage, m.Why)
		}
	}
}

// owner is who has a key.
func (w *world) owner(key string) (view.NodeID, record.Place) {
	w.t.Helper()
	p := record.PlaceOf(0, []byte(key))
	n, ok := w.cache.Snapshot().Map.Owner(p)
	if !ok {
		w.t.Fatalf("nobody has %s", key)
	}
	return n, p
}

// another is a node that is not this one.
func another(n view.NodeID) view.NodeID {
	if n == "n1" {
		return "n2"
	}
	return "n1"
}

func TestLargeValuesMoveWithTheirEnds(t *testing.T) {
	w := halting(t, "n1", "n2", "n3")
	c := w.client("n1", "n2", "n3")
	for _, o := range []meta.MigrationOptions{{}, {Ownership: meta.OwnershipLate}} {
		t.Run("ownership "+o.Ownership, func(t *testing.T) {
			from, _ := w.owner("{large}")
			large := strings.Repeat("0123456789abcdef", 1<<16)
			w.must(c.Set(patient(t), "{large}:lasting", large, time.Hour).Err())
			w.must(c.Set(patient(t), "{large}:for ever", large, 0).Err())
			w.must(c.Set(patient(t), "{large}:passing", large, 300*time.Millisecond).Err())
			step := migrate.BeforeTransfer
			w.haltAt(step)
			m := w.migrate(from, another(from), w.cache.Snapshot().Map.Ranges(from), o)
			w.halted(m.ID, step)
			await.True(t, "it has expired at the source", func() bool { return c.Exists(patient(t), "{large}:passing").Val() == 0 })
			w.goOn()
			w.done(m.ID)
			for key, ttl := range map[string]time.Duration{"{large}:lasting": time.Hour, "{large}:for ever": -1} {
				if got, err := c.Get(patient(t), key).Result(); got != large {
					t.Fatalf("%s has %d bytes, not %d (%v)", key, len(got), len(large), err)
				}
				if got := c.TTL(patient(t), key).Val(); ttl < 0 && got != ttl || ttl > 0 && (got <= 0 || got > ttl) {
					t.Fatalf("%s expires in %v, not in %v", key, got, ttl)
				}
			}
			if n := c.Exists(patient(t), "{large}:passing").Val(); n != 0 {
				t.Fatal("what had expired at the source is there again")
			}
		})
	}
}

// The key goes, and its neighbours of the same slot stay.
func TestARangeOfOnePlaceMoves(t *testing.T) {
	w := halting(t, "n1", "n2", "n3")
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 300)
	const one, neighbour = "{alone}:1", "{alone}:2"
	w.must(c.Set(patient(t), one, "goes", 0).Err())
	w.must(c.Set(patient(t), neighbour, "stays", 0).Err())
	from, place := w.owner(one)
	alone := view.RangesOf(view.Range{First: place, Last: place})
	before := w.cache.Snapshot().Map.Ranges(another(from))
	m := w.migrate(from, another(from), alone, meta.MigrationOptions{})
	w.done(m.ID)
	if got := w.cache.Snapshot().Migrations[m.ID].Records; got != 1 {
		t.Fatalf("%d records were moved for one key", got)
	}
	s := w.cache.Snapshot()
	if !s.Map.Ranges(another(from)).Covers(alone) || !s.Map.Ranges(another(from)).Covers(before) {
		t.Fatalf("%s has %v", another(from), s.Map.Ranges(another(from)))
	}
	if has, _ := w.owner(neighbour); has != from {
		t.Fatalf("%s went, too, to %s", neighbour, has)
	}
	native, err := client.Dial(patient(t), "ostro://"+s.Nodes[from].Address, client.Options{SessionTimeout: testPatience})
	w.must(err)
	defer native.Close()
	for key, want := range map[string]string{one: "goes", neighbour: "stays"} {
		if got, err := native.Get(patient(t), 0, []byte(key)).Wait(); err != nil || string(got.Value) != want {
			t.Fatalf("%s is %q (%v)", key, got.Value, err)
		}
	}
	back := w.migrate(another(from), from, alone, meta.MigrationOptions{})
	w.done(back.ID)
	if got := c.Get(patient(t), one).Val(); got != "goes" {
		t.Fatalf("%s came back as %q", one, got)
	}
	w.check(c, 0, 300)
}

func TestMigrationsBetweenDifferentPairsRunAtOnce(t *testing.T) {
	w := halting(t, "n1", "n2", "n3", "n4")
	c := w.client("n1", "n2", "n3", "n4")
	w.write(c, 0, 1000)
	k := w.count(200, "n1", "n2", "n3", "n4")
	w.haltAt(migrate.Pulling)
	s := w.cache.Snapshot()
	one := w.migrate("n1", "n2", half(s, "n1"), meta.MigrationOptions{})
	w.halted(one.ID, migrate.Pulling)
	other := w.migrate("n3", "n4", half(s, "n3"), meta.MigrationOptions{})
	w.halted(other.ID, migrate.Pulling) // While the first one is there, too.
	if s = w.cache.Snapshot(); s.Migrations[one.ID].Stage != meta.Moving || s.Migrations[other.ID].Stage != meta.Moving {
		t.Fatalf("they are %s and %s", s.Migrations[one.ID].Stage, s.Migrations[other.ID].Stage)
	}
	k.beyond(300)
	w.check(c, 0, 300)
	w.goOn()
	w.done(one.ID, other.ID)
	k.beyond(100)
	k.end()
	w.check(c, 0, 1000)
}

// What arrives from one node is asked for by a third: it waits for its turn, and then moves on, with what was written meanwhile.
func TestWhatStillArrivesMovesOn(t *testing.T) {
	w := halting(t, "n1", "n2", "n3")
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 1000)
	k := w.count(200, "n1", "n2", "n3")
	for _, step := range []migrate.Step{migrate.Pulling, migrate.Pulled} {
		share := half(w.cache.Snapshot(), "n1")
		w.haltAt(step)
		first := w.migrate("n1", "n2", share, meta.MigrationOptions{})
		w.halted(first.ID, step)
		second := w.migrate("n2", "n3", share, meta.MigrationOptions{})
		k.beyond(200)
		if s := w.cache.Snapshot(); s.Migrations[first.ID].Stage != meta.Moving || s.Migrations[second.ID].Stage != meta.Wanted {
			t.Fatalf("halted at %s they are %s and %s", step, s.Migrations[first.ID].Stage, s.Migrations[second.ID].Stage)
		}
		w.write(c, 1000, 1300)
		w.goOn()
		w.done(first.ID, second.ID)
		if s := w.cache.Snapshot(); !s.Map.Ranges("n3").Covers(share) {
			t.Fatalf("n3 has %v", s.Map.Ranges("n3"))
		}
		k.beyond(100)
	}
	k.end()
	w.check(c, 0, 1300)
}

// What is to move on to where it came from waits for the end of its return, and the return not for it.
func TestWhatIsAskedToMoveBackCanBeReturned(t *testing.T) {
	w := halting(t, "n1", "n2", "n3")
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 500)
	share := half(w.cache.Snapshot(), "n1")
	w.haltAt(migrate.Pulled)
	there := w.migrate("n1", "n2", share, meta.MigrationOptions{})
	w.halted(there.ID, migrate.Pulled)
	back := w.migrate("n2", "n1", share, meta.MigrationOptions{})
	w.await("the way back is queued", func(s *meta.Snapshot) bool { return s.Moves[back.ID].Stage == "queued" })
	w.must(w.meta.CancelMigration(patient(t), there.ID))
	w.goOn()
	if there = w.ended(there.ID); there.Stage != meta.Cancelled {
		t.Fatalf("the way there ended as %s: %s", there.Stage, there.Why)
	}
	if back = w.ended(back.ID); back.Stage != meta.Failed || !strings.Contains(back.Why, "n2 does not own") {
		t.Fatalf("the way back ended as %s: %s", back.Stage, back.Why)
	}
	w.write(c, 500, 600)
	w.check(c, 0, 600)
}

// Others are cancelled when all was pulled, while cold records follow, and in the midst of a copy.
func TestAMigrationCanBeCancelledAtEveryStep(t *testing.T) {
	w := halting(t, "n1", "n2", "n3")
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 500)
	k := w.count(200, "n1", "n2", "n3")
	for i, at := range []struct {
		step migrate.Step
		o    meta.MigrationOptions
	}{
		{migrate.AfterSample, meta.MigrationOptions{Sample: true}},
		{migrate.BeforeTransfer, meta.MigrationOptions{}},
		{migrate.AfterTransfer, meta.MigrationOptions{}},
		{migrate.Given, meta.MigrationOptions{}},
		{migrate.Yielded, meta.MigrationOptions{}},
		{migrate.Pulling, meta.MigrationOptions{}},
		{migrate.Closed, meta.MigrationOptions{Ownership: meta.OwnershipLate}},
		{migrate.Adopted, meta.MigrationOptions{}},
	} {
		w.haltAt(at.step)
		m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), at.o)
		w.reached(at.step)
		w.must(w.meta.CancelMigration(patient(t), m.ID))
		w.goOn()
		if m = w.ended(m.ID); m.Stage != meta.Cancelled {
			t.Fatalf("cancelled at %s it ended as %s: %s", at.step, m.Stage, m.Why)
		}
		if s := w.cache.Snapshot(); !s.Map.Ranges("n1").Covers(m.Ranges) {
			t.Fatalf("cancelled at %s it left %s elsewhere", at.step, m.Ranges)
		}
		k.beyond(100)
		w.write(c, 500+100*i, 600+100*i)
		w.check(c, 0, 600+100*i)
	}
	k.end()
}

// Whoever is faster, who cancels or who completes: nothing is lost, and there is one owner.
func TestAMigrationIsCancelledWhileItCompletes(t *testing.T) {
	w := halting(t, "n1", "n2", "n3")
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 500)
	k := w.count(200, "n1", "n2", "n3")
	for _, step := range []migrate.Step{migrate.Adopted, migrate.Completed, migrate.Adopted} {
		w.haltAt(step)
		m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
		w.halted(m.ID, step)
		w.goOn()
		err := w.meta.CancelMigration(patient(t), m.ID)
		m = w.ended(m.ID)
		if step == migrate.Completed && (err == nil || m.Stage != meta.Done) {
			t.Fatalf("what has ended was cancelled (%v), and is %s", err, m.Stage)
		}
		owner := map[meta.Stage]view.NodeID{meta.Done: "n2", meta.Cancelled: "n1"}[m.Stage]
		if s := w.cache.Snapshot(); owner == "" || !s.Map.Ranges(owner).Covers(m.Ranges) {
			t.Fatalf("it ended as %s (%v), and n1 has %v, n2 has %v", m.Stage, err, s.Map.Ranges("n1"), s.Map.Ranges("n2"))
		}
		t.Logf("it is %s: %v", m.Stage, err)
		k.beyond(100)
		w.check(c, 0, 500)
	}
	k.end()
}

// reached waits until somebody halts at a step.
func (w *world) reached(s migrate.Step) {
	w.t.Helper()
	await.True(w.t, fmt.Sprint("somebody halts at ", s), func() bool {
		_, err := os.Stat(migrate.Halts{Dir: w.halts}.Reached(s))
		return err == nil
	})
}

// Pulls and serving go on for as long as the leases do, whatever etcd does; how the migration ends depends on which is longer.
func TestEtcdIsAwayInTheMidstOfAMigration(t *testing.T) {
	for _, step := range []migrate.Step{migrate.BeforeTransfer, migrate.Pulling, migrate.Adopted} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			dir, addr := t.TempDir(), port.For(t).Addr() // Nobody else has it while etcd is away.
			began := func() *meta.Embedded {
				e, err := meta.StartEmbedded(patient(t), meta.EmbeddedConfig{Dir: dir, Addr: addr, Log: quiet})
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			e := began()
			t.Cleanup(func() { e.Close() })
			w := newWorldAt(t, e.URL())
			w.lease = 30 * time.Second // However long the machine stands still while etcd is away, leases are longer.
			w.startHalting("n1", "n2", "n3")
			c := w.client("n1", "n2", "n3")
			w.write(c, 0, 1000)
			k := w.count(100, "n1", "n2", "n3")
			k.beyond(100)
			w.haltAt(step)
			m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
			w.reached(step)
			e.Close()
			w.goOn()
			k.beyond(50)
			e = began()
			if m = w.ended(m.ID); m.Stage != meta.Done && m.Stage != meta.Failed {
				t.Fatalf("the migration ended as %s: %s", m.Stage, m.Why)
			}
			t.Logf("the migration is %s: %s", m.Stage, m.Why)
			w.await("all of them", func(s *meta.Snapshot) bool { return settled(s) && len(s.Alive) == 3 })
			k.beyond(100)
			k.end()
			w.check(c, 0, 1000)
		})
	}
}
