package meta

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
)

// Etcd takes 128 conditions in one step, and there are more nodes than that.
func TestTheKeysOfAVeryLargeClusterAreDealtOutAndANodeOfItIsDrained(t *testing.T) {
	s := open(t)
	term := campaign(t, join(t, s, "n0"))
	nodes := []view.NodeID{"n0"}
	for len(nodes) < MaxFirst+9 {
		nodes = append(nodes, join(t, s, view.NodeID(fmt.Sprint("n", len(nodes)))).Node.ID)
	}
	wantError(t, term.Begin(patience(t), nodes...), fmt.Sprintf("to %d nodes at most", MaxFirst))
	ok(t, term.Begin(patience(t), nodes[:MaxFirst]...))
	before := read(t, s).Map
	if got := len(before.Owners()); got != MaxFirst {
		t.Fatalf("%d nodes own something", got)
	}
	moves, err := before.Drain("n0", nodes[1:]...)
	ok(t, err)
	asked, err := term.Migrate(patience(t), "n0 is drained", moves...)
	ok(t, err)
	open := read(t, s).Open("n0")
	var moving view.Ranges
	for i, m := range open {
		if moving = moving.Union(m.Ranges); m.ID != uint64(i+1) {
			t.Fatalf("migration %d has the number %d", i+1, m.ID)
		}
	}
	if asked != len(nodes)-1 || len(open) != asked || !moving.Equal(before.Ranges("n0")) {
		t.Fatalf("%d migrations were asked for, and %d of %v are there", asked, len(open), moving)
	}
}

func TestOfMoreMovesThanOneStepTakesThoseStandThatCameBeforeAnOvertakenOne(t *testing.T) {
	s, _, term := three(t)
	var moves []view.Move
	for i := range askedAtOnce + 2 {
		moves = append(moves, view.Move{Ranges: slots(uint16(i), uint16(i)), From: "n1", To: "n2"})
	}
	overtaking := wanted(t, s, "n1", "n3", moves[askedAtOnce+1].Ranges)
	asked, err := term.Migrate(patience(t), "why", moves...)
	wantError(t, err, fmt.Sprintf("migration %d moves", overtaking.ID))
	if open := read(t, s).Open("n2"); asked != askedAtOnce || len(open) != asked {
		t.Fatalf("%d migrations were asked for, and %d are there", asked, len(open))
	}
}
