package server_test

import (
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/server"
)

func slotsOf(first, last uint16) view.Ranges { return view.RangesOf(view.SlotsRange(first, last)) }

// owns fails unless a node has all of some slots.
func (w *world) owns(n view.NodeID, first, last uint16) {
	w.t.Helper()
	s, err := w.meta.Read(patient(w.t))
	w.must(err)
	if !s.Map.Ranges(n).Covers(slotsOf(first, last)) {
		w.t.Fatalf("%s does not have slots %d to %d", n, first, last)
	}
}

// Redis' tools tell all nodes of a slot, and each of them sees to it that it moves: two may ask for the same one.
func TestSlotsThatOthersMoveFirstAreLeftOutAndTheRestMoves(t *testing.T) {
	w := halting(t, "n1", "n2", "n3")
	mover := server.NewSlotMover(t.Context(), "n2", w.meta, w.cache, w.log)
	before := w.cache.Snapshot()
	w.haltAt(migrate.BeforeTransfer)
	first := w.migrate("n1", "n2", slotsOf(5, 5), meta.MigrationOptions{})
	w.halted(first.ID, migrate.BeforeTransfer)

	// It is asked for what was on its way already, and fails when that has come.
	type outcome struct {
		again bool
		err   error
	}
	second := make(chan outcome, 1)
	go func() {
		again, err := mover.MoveSeen(patient(t), before, "n2", slotsOf(5, 6))
		second <- outcome{again, err}
	}()
	w.await("the second is asked for", func(s *meta.Snapshot) bool { return len(s.Migrations) == 2 })
	w.goOn()
	w.done(first.ID)
	if got := <-second; !got.again || got.err != nil {
		t.Fatalf("a part was there first: again %v, %v", got.again, got.err)
	}
	w.must(mover.MoveAll(patient(t), "n2", slotsOf(5, 6)))
	w.owns("n2", 5, 6)

	// The same, when all of it is over before anything is asked for.
	if again, err := mover.MoveSeen(patient(t), before, "n2", slotsOf(5, 7)); !again || err != nil {
		t.Fatalf("a part is there: again %v, %v", again, err)
	}
	w.must(mover.MoveAll(patient(t), "n2", slotsOf(5, 7)))
	w.owns("n2", 5, 7)
}

func TestSlotsThatOnlyOthersThanTheTargetWereToldOfMoveTogether(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	mover := server.NewSlotMover(t.Context(), "n3", w.meta, w.cache, w.log)
	then := w.cache.Snapshot()
	mover.Doubt("n2", then, 1, 2, 3, 5)
	w.owns("n2", 1, 3)
	w.owns("n2", 5, 5)
	w.owns("n1", 4, 4)
	back := w.migrate("n2", "n1", slotsOf(3, 3), meta.MigrationOptions{})
	w.done(back.ID)
	mover.Doubt("n2", then, 3, 5, 7) // The first two have moved since, one of them back.
	w.owns("n1", 3, 3)
	w.owns("n2", 7, 7)
	s, err := w.meta.Read(patient(t))
	w.must(err)
	if len(s.Migrations) != 3 {
		t.Errorf("%d migrations", len(s.Migrations))
	}
}
