package server_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
)

// quarter is half of half.
func quarter(s *meta.Snapshot, n view.NodeID) (taken view.Ranges) {
	for i, r := range half(s, n) {
		if i%2 == 0 {
			taken = taken.Union(view.RangesOf(r))
		}
	}
	return taken
}

// sendingWorld is a cold world with a migration from n1 to n2 that halts before cold records follow. The source's cleaner has
// begun to send them, as its clients write over all that it has left.
func sendingWorld(t *testing.T) (*world, *redis.ClusterClient, meta.Migration) {
	t.Helper()
	w := newWorld(t)
	w.memory, w.wide, w.halts = 1<<20, 1000, t.TempDir()
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, coldKeys)
	w.haltAt(migrate.Settling)
	m := w.migrate("n1", "n2", quarter(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
	w.halted(m.ID, migrate.Settling)
	before := w.cache.Snapshot().Moves[m.ID].Remaining
	w.remove(c, 0, 200)
	w.until("the source's cleaner sends", func() bool {
		w.write(c, 200, 3000)
		p := w.cache.Snapshot().Moves[m.ID]
		return p.Followed.Sent > 0 && p.Remaining < before
	})
	return w, c, m
}

func TestTheSourcesCleanerSendsWhatIsAnothersUntilNothingRemains(t *testing.T) {
	w, c, m := sendingWorld(t)
	// The target counts what came before it is safe there, and the source drops it after that.
	w.until("the source drops what it sent", func() bool { return w.nodes["n1"].Engine().Metrics().Sent > 0 })
	w.check(c, 200, coldKeys)
	w.missing(c, 0, 200)
	w.goOn()
	if m = w.ended(m.ID); m.Stage != meta.Done || m.Followed.Sent == 0 {
		t.Fatalf("the migration ended as %+v", m)
	}
	if p := w.cache.Snapshot().Moves[m.ID]; p.Remaining != 0 {
		t.Errorf("%d records are still to come after the end", p.Remaining)
	}
	w.check(c, 200, coldKeys)
	w.missing(c, 0, 200)
}

func TestWhoeverDiesAfterTheSourcesCleanerHasSentNothingIsLostAndNothingComesBack(t *testing.T) {
	long(t)
	harms := []string{"n1", "n2", "cancel", "restart"}
	if os.Getenv("OSTRO_HARMS") != "all" {
		harms = harms[rand.IntN(len(harms)):][:1]
	}
	for _, harm := range harms {
		t.Run(harm, func(t *testing.T) {
			w, _, m := sendingWorld(t)
			switch harm {
			case "cancel":
				w.must(w.meta.CancelMigration(patient(t), m.ID))
				if m = w.ended(m.ID); m.Stage != meta.Cancelled {
					t.Fatalf("the migration ended as %+v", m)
				}
			case "restart": // What it dropped may come back to its index, but not to its owner.
				w.must(w.nodes["n1"].Stop(patient(t)))
				w.start("n1")
				w.goOn()
				w.ended(m.ID)
			default:
				w.drop(harm)
				w.await("the death is over", func(s *meta.Snapshot) bool {
					return settled(s) && !s.IsAlive(view.NodeID(harm)) && s.Migrations[m.ID].Stage.Ended()
				})
			}
			c := w.client(w.all()...)
			w.check(c, 200, coldKeys)
			w.missing(c, 0, 200)
			w.write(c, 0, 100)
			w.check(c, 0, 100)
		})
	}
}
