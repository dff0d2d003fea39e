package server_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
)

// coldKeys are several times as much as the memory of the nodes of a cold world.
const coldKeys = 6000

// coldWorld is a cluster whose nodes have most of their records on disk.
func coldWorld(t *testing.T, halt map[string]string) (*world, *redis.ClusterClient) {
	t.Helper()
	w := newWorld(t)
	w.memory, w.wide, w.halt = 1<<20, 1000, halt
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, coldKeys)
	return w, c
}

// served waits until the target of a migration carries all load.
func (w *world) served(id uint64) meta.Migration {
	w.t.Helper()
	s := w.await(fmt.Sprint("migration ", id, " is served"), func(s *meta.Snapshot) bool { return s.Migrations[id].Moved() })
	return s.Migrations[id]
}

func TestDataLargerThanMemoryMovesInEveryMode(t *testing.T) {
	long(t)
	w, c := coldWorld(t, nil)
	k := w.count(200, "n1", "n2", "n3")
	to, from := view.NodeID("n2"), view.NodeID("n1")
	for _, mode := range []string{"", meta.ColdScan, meta.ColdRead} {
		m := w.migrate(from, to, half(w.cache.Snapshot(), from), meta.MigrationOptions{Cold: mode})
		w.check(c, 0, coldKeys/3)
		m = w.served(m.ID)
		if (mode == "") != (m.Cold > 0) || m.Served.IsZero() {
			t.Fatalf("%q: %d records were known of only, and it was served at %v", mode, m.Cold, m.Served)
		}
		w.check(c, coldKeys/3, coldKeys)
		if m = w.ended(m.ID); m.Stage != meta.Done {
			t.Fatalf("%q ended as %+v", mode, m)
		}
		k.beyond(100)
		w.await("the source drops what left it", func(s *meta.Snapshot) bool { return len(s.Leaving(from)) == 0 })
		from, to = to, from // And back, though not all of it.
	}
	k.end()
	w.check(c, 0, coldKeys)
}

func TestAMigrationThatSettlesCanBeCancelled(t *testing.T) {
	w, c := coldWorld(t, map[string]string{"n2": "settling"})
	k := w.count(200, "n1", "n2", "n3")
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
	w.halted(m.ID, migrate.Settling)
	if p := w.cache.Snapshot().Moves[m.ID]; p.Remaining == 0 {
		t.Fatalf("nothing is still to come: %+v", p)
	}
	w.check(c, 0, coldKeys/4)
	w.write(c, coldKeys, coldKeys+300)
	k.beyond(100)
	w.must(w.meta.CancelMigration(patient(t), m.ID))
	if m = w.ended(m.ID); m.Stage != meta.Cancelled {
		t.Fatalf("the migration ended as %+v", m)
	}
	k.beyond(100)
	k.end()
	w.check(c, 0, coldKeys+300)
}

func TestWhoeverDiesWhileColdRecordsAreStillToComeNothingIsLost(t *testing.T) {
	long(t)
	victims := []string{"n1", "n2"}
	if os.Getenv("OSTRO_HARMS") != "all" {
		victims = victims[rand.IntN(2):][:1]
	}
	for _, victim := range victims {
		t.Run(victim, func(t *testing.T) {
			w, c := coldWorld(t, map[string]string{"n2": "settling"})
			k := w.count(100, "n1", "n2", "n3")
			m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
			w.halted(m.ID, migrate.Settling)
			w.write(c, coldKeys, coldKeys+300)
			w.check(c, 0, coldKeys/4)
			k.beyond(100)
			w.drop(victim)
			w.halt = nil
			w.await("the death is over", func(s *meta.Snapshot) bool {
				return settled(s) && !s.IsAlive(view.NodeID(victim)) && s.Migrations[m.ID].Stage.Ended()
			})
			k.beyond(100)
			c = w.client(w.all()...)
			w.check(c, 0, coldKeys+300)
			w.start(victim)
			w.await("it is back", func(s *meta.Snapshot) bool { return settled(s) && s.IsAlive(view.NodeID(victim)) })
			k.beyond(100)
			k.end()
			w.check(c, 0, coldKeys+300)
		})
	}
}

// Whether it comes back before its lease has ended, and pulls everything again, or after, and the source has the
// ranges: nothing is lost.
func TestATargetThatComesBackWhileColdRecordsAreStillToComeLosesNothing(t *testing.T) {
	long(t)
	w, c := coldWorld(t, map[string]string{"n2": "settling"})
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
	w.halted(m.ID, migrate.Settling)
	w.write(c, coldKeys, coldKeys+300)
	w.check(c, 0, coldKeys/4)
	w.drop("n2")
	w.halt = nil
	w.start("n2")
	c = w.client(w.all()...)
	w.check(c, 0, coldKeys+300)
	if m = w.ended(m.ID); m.Stage != meta.Done && m.Stage != meta.Failed {
		t.Fatalf("the migration ended as %+v", m)
	}
	w.check(c, 0, coldKeys+300)
}
