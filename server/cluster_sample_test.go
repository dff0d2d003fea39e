package server

import (
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// A node that is drained gives keys to several others at once.
func TestSamplesOfSeveralMigrationsDoNotDisturbEachOther(t *testing.T) {
	g := newGate("n1", &meta.Snapshot{})
	all := []store.Range{{Last: ^record.Place(0)}}
	one, two := store.NewSample(all, 10), store.NewSample(all, 10)
	endOne, endTwo := g.note(one), g.note(two)
	use := func(key string) {
		g.native.Load().Samples.Note(&store.Key{Place: record.PlaceOf(0, []byte(key)), Bytes: []byte(key)})
	}
	use("a")
	endOne()
	use("b")
	use("b")
	endTwo()
	use("c")
	if len(one.Keys()) != 1 || len(two.Keys()) != 2 || string(two.Keys()[0].Bytes) != "b" {
		t.Errorf("%+v and %+v were noted, want a, and b, which was used most, and a", one.Keys(), two.Keys())
	}
	var y yields
	s := &meta.Snapshot{Migrations: map[uint64]meta.Migration{1: {ID: 1, Stage: meta.Wanted}, 2: {ID: 2, Stage: meta.Wanted}, 3: {ID: 3, Stage: meta.Wanted}}}
	y.keep(1, one.Keys(), s)
	y.keep(2, two.Keys(), s)
	if len(y.kept(1)) != 1 || len(y.kept(2)) != 2 {
		t.Errorf("%d and %d keys are kept, want 1 and 2", len(y.kept(1)), len(y.kept(2)))
	}
	s.Migrations[1] = meta.Migration{ID: 1, Stage: meta.Done}
	y.keep(3, nil, s)
	if y.kept(1) != nil || len(y.kept(2)) != 2 {
		t.Error("a sample was kept after its migration, or forgotten before")
	}
}

func TestASourceForgetsWhatItYieldedOnceThatIsOver(t *testing.T) {
	var y yields
	s := &meta.Snapshot{Migrations: map[uint64]meta.Migration{1: {ID: 1, Stage: meta.Moving}, 2: {ID: 2, Stage: meta.Moving}}}
	y.add(1, s)
	y.add(2, s)
	if !y.has(1) || !y.has(2) {
		t.Fatal("what was yielded is not known")
	}
	s.Migrations[1] = meta.Migration{ID: 1, Stage: meta.Done}
	y.add(3, s)
	if y.has(1) || !y.has(2) || !y.has(3) {
		t.Error("a migration is remembered after its end, or forgotten before")
	}
}
