package server_test

import (
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// TestRangesMoveToAndFroWhereOwnershipIsCheckedByKeys counts exactly: what a node executed that did not own
// the key, or executed again, would show.
func TestRangesMoveToAndFroWhereOwnershipIsCheckedByKeys(t *testing.T) {
	w := newWorld(t)
	w.ownership = "keys"
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	k := w.count(200, "n1", "n2", "n3")
	to, from := view.NodeID("n2"), view.NodeID("n1")
	ranges := half(w.cache.Snapshot(), from)
	for range 4 {
		k.beyond(200)
		m := w.migrate(from, to, ranges, meta.MigrationOptions{})
		if m = w.ended(m.ID); m.Stage != meta.Done {
			t.Fatalf("the migration is %s: %s", m.Stage, m.Why)
		}
		from, to = to, from
	}
	k.beyond(200)
	k.end()
	if s := k.c.Stats(); s.Retries == 0 {
		t.Fatalf("no operation ever went to a node that did not own its key: %+v", s)
	}
}

// TestANodeServesThousandsOfRanges splits ownership as finely as benchmarks do, and takes that back.
func TestANodeServesThousandsOfRanges(t *testing.T) {
	if testing.Short() {
		t.Skip("the thousands take their time")
	}
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 500)
	k := w.count(100, "n1", "n2", "n3")
	pieces := w.cache.Snapshot().Map.Ranges("n1").Divide(4096)
	var odd view.Ranges
	for i := 1; i < len(pieces); i += 2 {
		odd = append(odd, pieces[i]...)
	}
	for _, ends := range [][2]view.NodeID{{"n1", "n2"}, {"n2", "n1"}} {
		m := w.migrate(ends[0], ends[1], odd, meta.MigrationOptions{})
		if m = w.ended(m.ID); m.Stage != meta.Done {
			t.Fatalf("the migration is %s: %s", m.Stage, m.Why)
		}
		k.beyond(100)
		w.check(c, 0, 500)
		if n := len(w.cache.Snapshot().Map.Ranges("n1")); ends[0] == "n1" && n != 2048 {
			t.Fatalf("n1 owns %d ranges", n)
		}
	}
	k.end()
}
