package migrate

import (
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

func TestPiecesCoverTheSamePlacesAndAreAsManyAsWanted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var list []view.Range
		for range 1 + random.IntN(5) {
			a, b := record.Place(random.Uint64()), record.Place(random.Uint64())
			list = append(list, view.Range{First: min(a, b), Last: max(a, b)})
		}
		ranges, n := view.RangesOf(list...), 1+random.IntN(20)
		cut := pieces(ranges, n)
		if !view.RangesOf(cut...).Equal(ranges) || len(cut) < n {
			t.Fatalf("%s in %d pieces is %v", ranges, n, cut)
		}
		for i := 1; i < len(cut); i++ {
			if cut[i].First <= cut[i-1].Last {
				t.Fatalf("%v and %v overlap", cut[i-1], cut[i])
			}
		}
	}
}

func TestFewPlacesAreFewPieces(t *testing.T) {
	three := view.RangesOf(view.Range{First: 5, Last: 6}, view.Range{First: 9, Last: 9})
	if cut := pieces(three, 8); len(cut) != 3 {
		t.Fatalf("%v", cut)
	}
	if cut := pieces(nil, 8); len(cut) != 0 {
		t.Fatalf("%v", cut)
	}
}
