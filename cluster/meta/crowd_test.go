package meta

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
)

// slot is one slot of n3's.
func slot(i int) view.Ranges { return slots(uint16(12000+i), uint16(12000+i)) }

// crowd has n3 take part in as many migrations as can begin and in many that wait, each of which tells its progress, when many others have
// ended.
func crowd(t *testing.T, s *Store, members []*Member) {
	t.Helper()
	for i := range history {
		ok(t, s.CancelMigration(patience(t), wanted(t, s, "n3", "n1", slot(i)).ID))
	}
	for i := range mostBegun {
		m := moved(t, members[2], members[i%2], slot(i))
		ok(t, members[i%2].TellMigration(patience(t), MigrationProgress{ID: m.ID, Stage: "pulling"}))
	}
	for i := range 150 {
		m := wanted(t, s, "n3", "n1", slot(mostBegun+i))
		ok(t, members[0].TellMigration(patience(t), MigrationProgress{ID: m.ID, Stage: "queued"}))
	}
}

func TestANodeWithMoreMigrationsThanOneStepCanEndIsRecovered(t *testing.T) {
	s, members, term := three(t)
	crowd(t, s, members)
	heirs := []view.NodeID{"n1", "n2"}
	for i := range MaxHeirs - len(heirs) {
		heirs = append(heirs, join(t, s, view.NodeID(fmt.Sprint("heir", i))).Node.ID)
	}
	kill(t, members[2])
	r, err := term.Recover(patience(t), "n3", heirs...)
	ok(t, err)
	if len(r.Parts) != mostBegun+MaxHeirs {
		t.Fatalf("%d take part in the recovery", len(r.Parts))
	}
	got := read(t, s)
	if open, left := got.Open("n3"), got.Map.Ranges("n3"); len(open) > 0 || len(left) > 0 || len(got.Moves) > 0 {
		t.Fatalf("n3 has %v and takes part in %v, with progress of %v", left, open, got.Moves)
	}
}

func TestAMigrationBeginsWhenItsNodesHaveRoomForIt(t *testing.T) {
	s, members, _ := three(t)
	var all []Migration
	for i := range mostBegun {
		all = append(all, moved(t, members[2], members[0], slot(i)))
	}
	late := wanted(t, s, "n3", "n2", slot(mostBegun))
	_, err := members[2].Move(patience(t), late.ID, members[1].Asks(1, 1))
	if wantError(t, err, "n3 has part in 12 migrations"); !errors.Is(err, ErrNotYet) {
		t.Fatalf("%v is no reason to wait", err)
	}
	if !read(t, s).Awaited(all[0]) {
		t.Fatal("nobody knows that one waits for the others")
	}
	moved(t, members[1], join(t, s, "n4"), slots(6000, 6001)) // Others have room.
	ok(t, members[0].CompleteMigration(patience(t), all[0].ID, MigrationStats{}))
	_, err = members[2].Move(patience(t), late.ID, members[1].Asks(1, 1))
	ok(t, err)
	if read(t, s).Awaited(all[1]) {
		t.Fatal("nobody waits any more")
	}
}
