package coordinator_test

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

func (w *world) migrate(from, to view.NodeID, ranges view.Ranges) meta.Migration {
	w.t.Helper()
	m, err := w.meta.Migrate(patience(w.t), meta.MigrationRequest{Source: from, Target: to, Ranges: ranges})
	w.must(err)
	return m
}

func (w *world) slots(first, last uint16) view.Ranges {
	return view.RangesOf(view.SlotsRange(first, last))
}

func TestAMigrationToANodeThatDiesBeforeItBeganHasFailed(t *testing.T) {
	w := four(t)
	w.join("n5")
	m := w.migrate("n1", "n5", w.slots(0, 9))
	w.kill("n5")
	s := w.await("the end of the migration", func(s *meta.Snapshot) bool { return s.Migrations[m.ID].Stage.Ended() })
	if got := s.Migrations[m.ID]; got.Stage != meta.Failed || !strings.Contains(got.Why, "n5 is not alive") {
		t.Fatalf("%+v", got)
	}
}

func TestASourceThatDiesLeavesItsRangesToTheTarget(t *testing.T) {
	w := four(t)
	m := w.migrate("n1", "n2", w.slots(0, 9))
	_, err := w.members["n1"].Move(patience(t), m.ID, w.members["n2"].Asks(5, 5))
	w.must(err)
	w.kill("n1")
	s := w.await("the recovery of n1", func(s *meta.Snapshot) bool { return s.Migrations[m.ID].Stage.Ended() && settled(s) })
	if !s.Map.Ranges("n2").Covers(w.slots(0, 9)) || s.Migrations[m.ID].Stage != meta.Done {
		t.Fatalf("%+v, n2 has %v", s.Migrations[m.ID], s.Map.Ranges("n2"))
	}
}

func TestANodeInheritsNothingThatItHasNotDroppedYet(t *testing.T) {
	w := four(t)
	m := w.migrate("n1", "n2", w.slots(0, 9))
	_, err := w.members["n1"].Move(patience(t), m.ID, w.members["n2"].Asks(5, 5))
	w.must(err)
	w.must(w.members["n2"].CompleteMigration(patience(t), m.ID, meta.MigrationStats{}))
	w.await("its end", func(s *meta.Snapshot) bool { return s.Leaving("n1").Equal(w.slots(0, 9)) })
	w.kill("n2")
	s := w.await("the recovery of n2", func(s *meta.Snapshot) bool { return len(s.Map.Ranges("n2")) == 0 && settled(s) })
	if got := s.Map.Ranges("n1").Intersect(w.slots(0, 9)); len(got) > 0 {
		t.Fatalf("n1 got %v, of which its log has older records", got)
	}
	w.must(w.members["n1"].Retracted(patience(t), w.slots(0, 9), 9, 9))
	if left := w.await("a floor", func(s *meta.Snapshot) bool { return len(s.Leaving("n1")) == 0 }); len(left.Logs[left.Nodes["n1"].Log].Floors) != 1 {
		t.Fatalf("floors are %v", left.Logs[left.Nodes["n1"].Log].Floors)
	}
}
