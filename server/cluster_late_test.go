package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
)

// copySteps are those at which a target has copied something that is the source's.
var copySteps = []migrate.Step{migrate.CopyingSome, migrate.CopiedAll, migrate.Closed}

// remove deletes keys from a number to another.
func (w *world) remove(c *redis.ClusterClient, from, to int) {
	w.t.Helper()
	for i := from; i < to; i++ {
		w.must(c.Del(patient(w.t), key(i)).Err())
	}
}

// missing finds none of the keys from a number to another.
func (w *world) missing(c *redis.ClusterClient, from, to int) {
	w.t.Helper()
	for i := from; i < to; i++ {
		if n, err := c.Exists(patient(w.t), key(i)).Result(); err != nil || n != 0 {
			w.t.Fatalf("%s is there again (%v)", key(i), err)
		}
	}
}

func TestATargetThatComesBackAtOnceCopiesAgainAndBringsNothingBack(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	step := copySteps[seed%uint64(len(copySteps))]
	t.Logf("it is killed at %s", step)
	w := newWorld(t)
	w.halt = map[string]string{"n2": string(step)}
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 1000)
	large := strings.Repeat("large ", 10_000)
	for i := range 20 {
		w.must(c.Set(patient(t), fmt.Sprint("large:", i), large, 0).Err())
	}
	k := w.count(100, "n1", "n2", "n3")
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{Ownership: meta.OwnershipLate})
	w.halted(m.ID, step)
	w.halt = nil
	w.drop("n2")
	w.start("n2")
	c = w.client("n1", "n2", "n3")
	w.remove(c, 0, 300)
	if m = w.ended(m.ID); m.Stage == meta.Cancelled {
		t.Fatalf("the migration is %s: %s", m.Stage, m.Why)
	}
	t.Logf("the migration is %s: %s, after %d attempts", m.Stage, m.Why, m.Attempt)
	k.beyond(100)
	w.missing(c, 0, 300)
	w.check(c, 300, 1000)
	// Its log has both copies.
	w.drop("n2")
	w.start("n2")
	w.await("all of them", func(s *meta.Snapshot) bool { return settled(s) && s.IsAlive("n2") })
	c = w.client("n1", "n2", "n3")
	k.beyond(100)
	k.end()
	w.missing(c, 0, 300)
	w.check(c, 300, 1000)
	for i := range 20 {
		if got, err := c.Get(patient(t), fmt.Sprint("large:", i)).Result(); got != large {
			t.Fatalf("large:%d has %d bytes (%v)", i, len(got), err)
		}
	}
}

func TestACopyThatIsCancelledLeavesEverythingWhereItWas(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	step := copySteps[seed%uint64(len(copySteps))]
	t.Logf("it is cancelled at %s", step)
	w := newWorld(t)
	w.halt = map[string]string{"n2": string(step)}
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 1000)
	k := w.count(100, "n1", "n2", "n3")
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{Ownership: meta.OwnershipLate})
	w.halted(m.ID, step)
	w.must(w.meta.CancelMigration(patient(t), m.ID))
	if m = w.ended(m.ID); m.Stage != meta.Cancelled {
		t.Fatalf("the migration ended as %s: %s", m.Stage, m.Why)
	}
	k.beyond(100)
	w.remove(c, 0, 300)
	s := w.await("the target drops its copy", func(s *meta.Snapshot) bool { return len(s.Leaving("n2")) == 0 })
	if !s.Map.Ranges("n1").Covers(m.Ranges) {
		t.Fatal("the ranges are not where they were")
	}
	// What died is inherited by who had a copy, too.
	w.drop("n1")
	w.await("heirs", func(s *meta.Snapshot) bool { return settled(s) && len(s.Map.Ranges("n1")) == 0 })
	k.beyond(100)
	k.end()
	c = w.client("n2", "n3")
	w.missing(c, 0, 300)
	w.check(c, 300, 1000)
}
