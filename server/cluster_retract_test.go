package server_test

import (
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// A node tries again to drop what has left it when etcd did not say whether it had noted the first attempt. If it had, the
// ranges may be the node's again by now, and have been written to.
func TestWhatCameBackIsNotDroppedByWhoDidNotHearThatItHadDroppedIt(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, 500)
	ranges := half(w.cache.Snapshot(), "n1")
	for _, way := range [][2]view.NodeID{{"n1", "n2"}, {"n2", "n1"}} {
		if m := w.ended(w.migrate(way[0], way[1], ranges, meta.MigrationOptions{}).ID); m.Stage != meta.Done {
			t.Fatalf("the migration is %s: %s", m.Stage, m.Why)
		}
	}
	w.write(c, 500, 1000)
	w.must(w.nodes["n1"].Retract(patient(t), ranges)) // as one who has seen that they had left
	w.check(c, 0, 1000)
}
