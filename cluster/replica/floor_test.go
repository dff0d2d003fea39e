package replica_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// sideText is a closed side segment.
func sideText(id record.SegmentID, batches int) *text {
	x := newText(logID, id)
	for range batches {
		x.batch(0, 3, false)
	}
	return x.batch(0, 0, true)
}

// randomRanges are up to three that do not touch.
func randomRanges(rng *rand.Rand) view.Ranges {
	var ends []record.Place
	for range 2 * (1 + rng.IntN(3)) {
		ends = append(ends, record.Place(rng.Uint64()))
	}
	slices.Sort(ends)
	var rs view.Ranges
	for i := 0; i < len(ends); i += 2 {
		rs = append(rs, view.Range{First: ends[i], Last: ends[i+1]})
	}
	return rs
}

// counted are the keys that an heir must get, by a look at each batch on its own.
func counted(rs view.Ranges, cut record.BatchID, floors []view.Floor, texts ...*text) (keys []string) {
	for _, x := range texts {
		from, key := 0, 0
		for i, end := range x.ends {
			n := x.batches[i]
			for _, p := range record.Entries(x.bytes[from:end]) {
				if p.Type() != record.TypePut && p.Type() != record.TypeTombstone {
					continue
				}
				place := record.PlaceOf(0, p.Key())
				counts := n <= cut && inside(rs, place)
				for _, f := range floors {
					side, below := n == 0, n < f.Batch
					if side {
						below = x.id < f.Segment
					}
					counts = counts && !(below && inside(f.Ranges, place))
				}
				if counts {
					keys = append(keys, x.keys[key])
				}
				key++
			}
			from = end
		}
	}
	slices.Sort(keys)
	return keys
}

func TestHeirsGetExactlyWhatCountsAboveTheFloors(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	s := newScene(t, 2)
	var texts []*text
	var ids []record.SegmentID
	last := record.BatchID(0)
	open := []*text{newText(logID, 1), newText(logID, 2)}
	next := record.SegmentID(3)
	for range 200 {
		switch h := rng.IntN(len(open)); {
		case rng.IntN(12) == 0:
			texts = append(texts, sideText(next, 1+rng.IntN(20)))
			next++
		case open[h].end > segmentBytes/8:
			last++
			texts = append(texts, open[h].batch(last, 0, true))
			open[h] = newText(logID, next)
			next++
		default:
			last++
			open[h].batch(last, 1+rng.IntN(6), false)
		}
	}
	for _, x := range open {
		last++
		texts = append(texts, x.batch(last, 0, true))
	}
	for _, x := range texts {
		ids = append(ids, x.id)
	}
	r := roster(1, last, ids...)
	for i, x := range texts {
		check(t, s.put(s.nodes()[i%2], x, r))
	}
	f := s.find(s.nodes()...)
	if cut := must(f.Cut())(t); cut != last {
		t.Fatalf("cut %d, want %d", cut, last)
	}
	fewer := 0
	for range 60 {
		var floors []view.Floor
		for range rng.IntN(4) {
			floors = append(floors, view.Floor{
				Ranges: randomRanges(rng), Batch: 1 + record.BatchID(rng.Uint64N(uint64(last)+1)), Segment: 1 + record.SegmentID(rng.Uint64N(uint64(next))),
			})
		}
		rs, cut := whole, last
		if rng.IntN(2) == 0 {
			rs = randomRanges(rng)
		}
		if rng.IntN(2) == 0 {
			cut = 1 + record.BatchID(rng.Uint64N(uint64(last)))
		}
		got, err := gather(t, s, f, replica.FetchOptions{Ranges: rs, Cut: cut, Floors: floors})
		want := counted(rs, cut, floors, texts...)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("cut %d, ranges %v, floors %+v: %d keys, want %d; %v", cut, rs, floors, len(got), len(want), err)
		}
		if len(want) < len(counted(rs, cut, nil, texts...)) {
			fewer++
		}
	}
	if fewer == 0 {
		t.Error("no floor was above anything")
	}
}
