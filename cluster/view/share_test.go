package view_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

func TestAShareIsAboutItsFractionAndPartOfTheSet(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		var parts []view.Range
		for range 1 + r.IntN(4) {
			a, b := record.Place(r.Uint64()), record.Place(r.Uint64())
			if r.IntN(2) == 0 { // within a slot
				b = a>>48<<48 | record.Place(r.Uint64()>>16)
			}
			parts = append(parts, view.Range{First: min(a, b), Last: max(a, b)})
		}
		set := view.RangesOf(parts...)
		fraction := 0.01 + 0.98*r.Float64()
		share := set.Share(fraction)
		if !set.Covers(share) || len(share) == 0 {
			t.Fatalf("seed %d: %s is not a part of %s", seed, share, set)
		}
		if got, want := share.Fraction(), set.Fraction()*fraction; math.Abs(got-want) > want/7 {
			t.Fatalf("seed %d: %g of %s is %s, which is %g of it", seed, fraction, set, share, got/set.Fraction())
		}
	}
}

func TestNoPartOfASetIsNothing(t *testing.T) {
	for _, fraction := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		if got := view.RangesOf(view.SlotsRange(0, 9999)).Share(fraction); got != nil {
			t.Errorf("%g of a set is %s", fraction, got)
		}
	}
}

func TestAShareIsCutWhereASlotBegins(t *testing.T) {
	half := view.RangesOf(view.SlotsRange(0, 9999)).Share(0.5)
	if want := view.RangesOf(view.SlotsRange(5000, 9999)); !half.Equal(want) {
		t.Errorf("half of 0-9999 is %s, not %s", half, want)
	}
	whole := view.RangesOf(view.SlotsRange(7, 7))
	if got := whole.Share(1); !got.Equal(whole) {
		t.Errorf("all of a slot is %s", got)
	}
	if got := whole.Share(0.5); len(got) != 1 || got[0].Last != whole[0].Last || math.Abs(got.Fraction()/whole.Fraction()-0.5) > 0.001 {
		t.Errorf("half of a slot is %s", got)
	}
	one := view.RangesOf(view.Range{First: 5, Last: 5})
	if got := one.Share(0.1); !got.Equal(one) {
		t.Errorf("a part of one place is %s", got)
	}
}

func TestWhoJoinsGetsAsMuchAsTheOthersKeep(t *testing.T) {
	m, err := view.Initial("a", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	moves := m.Join("d", "a", "b", "c")
	for _, move := range moves {
		if m, err = m.Apply(move); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []view.NodeID{"a", "b", "c", "d"} {
		if got := m.Ranges(n).Fraction(); math.Abs(got-0.25) > 0.001 {
			t.Errorf("%s has %g", n, got)
		}
	}
	if again := m.Join("d", "a", "b", "c"); again != nil {
		t.Errorf("it has its share and is given %v", again)
	}
	// Only who has more than its part gives.
	m, _ = view.Initial("a", "b")
	if m, err = m.Apply(view.Move{Ranges: m.Ranges("a").Share(0.5), From: "a", To: "b"}); err != nil {
		t.Fatal(err)
	}
	moves = m.Join("c", "a", "b")
	if len(moves) != 1 || moves[0].From != "b" || math.Abs(moves[0].Ranges.Fraction()-1.0/3) > 0.001 {
		t.Errorf("a has a quarter, b the rest, and c is given %v", moves)
	}
}
