package view

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"pgregory.net/rapid"
)

// corners are where ranges of these tests begin and end: around the ends of
// the space and the borders of slots, those of the first maps of two and three nodes among them.
var corners = func() []record.Place {
	var ps []record.Place
	for _, slot := range []record.Place{0, 1, 2, 3, 5460, 5461, 8191, 8192, 10921, 10922, 16383} {
		first := slot << slotShift
		ps = append(ps, first, first+1, slotEnd(first)-1, slotEnd(first))
	}
	return ps
}()

// probes are the space as the model has it: every corner, and one place for
// all that lie between it and the next. No range of these tests tells those apart.
var probes = func() []record.Place {
	ps := slices.Clone(corners)
	for i, p := range corners[:len(corners)-1] {
		if p+1 < corners[i+1] {
			ps = append(ps, p+1)
		}
	}
	return ps
}()

type model map[record.Place]bool

func modelOf(rs []Range) model {
	m := model{}
	for _, p := range probes {
		for _, r := range rs {
			if r.First <= p && p <= r.Last {
				m[p] = true
			}
		}
	}
	return m
}

func drawRange(t *rapid.T, label string) Range {
	a, b := rapid.SampledFrom(corners).Draw(t, label), rapid.SampledFrom(corners).Draw(t, label)
	return Range{min(a, b), max(a, b)}
}

func drawRanges(t *rapid.T, label string) []Range {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Range { return drawRange(t, label) }), 0, 6).Draw(t, label)
}

func TestSetOperationsAgreeWithANaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		as, bs := drawRanges(t, "a"), drawRanges(t, "b")
		a, b, inA, inB := RangesOf(as...), RangesOf(bs...), modelOf(as), modelOf(bs)
		for _, p := range probes {
			want := map[string]bool{
				"a": inA[p], "union": inA[p] || inB[p], "intersect": inA[p] && inB[p],
				"subtract": inA[p] && !inB[p], "complement": !inA[p],
			}
			for name, got := range map[string]Ranges{
				"a": a, "union": a.Union(b), "intersect": a.Intersect(b), "subtract": a.Subtract(b), "complement": a.complement(),
			} {
				if got.Contains(p) != want[name] {
					t.Fatalf("%s of %v and %v: place %x is in: %v", name, as, bs, uint64(p), got.Contains(p))
				}
				canonical(t, got)
			}
		}
		if subset := a.Union(b).Equal(a); a.Covers(b) != subset || !a.Union(b).Covers(b) {
			t.Fatalf("%v covers %v: %v", a, b, a.Covers(b))
		}
		if !a.Intersect(b).Union(a.Subtract(b)).Equal(a) {
			t.Fatalf("%v is not its parts inside and outside of %v", a, b)
		}
	})
}

// canonical fails unless s is sorted, disjoint and as short as can be.
func canonical(t interface{ Fatalf(string, ...any) }, s Ranges) {
	for i, r := range s {
		if r.First > r.Last || i > 0 && (s[i-1].Last == lastPlace || s[i-1].Last+1 >= r.First) {
			t.Fatalf("%v is no proper set", s)
		}
	}
}

func TestCuttingAtSlotsKeepsEveryPlaceAndCrossesNoBorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := RangesOf(drawRanges(t, "s")...)
		parts := s.AtSlots()
		if !RangesOf(parts...).Equal(s) {
			t.Fatalf("the parts of %v are not all of it", s)
		}
		for i, p := range parts {
			if p.First.Slot() != p.Last.Slot() || i > 0 && parts[i-1].Last >= p.First {
				t.Fatalf("part %d of %v is %v", i, s, p)
			}
		}
	})
	if n := len(RangesOf(Whole).AtSlots()); n != record.PlaceSlots {
		t.Fatalf("the space has %d slots", n)
	}
}

func TestDividingDealsEveryPlaceOutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := RangesOf(drawRanges(t, "s")...), rapid.IntRange(1, 9).Draw(t, "n")
		parts := s.Divide(n)
		if len(parts) != n {
			t.Fatalf("%d parts instead of %d", len(parts), n)
		}
		var all Ranges
		for _, p := range parts {
			canonical(t, p)
			if len(all.Intersect(p)) > 0 {
				t.Fatalf("%v is dealt out twice", all.Intersect(p))
			}
			all = all.Union(p)
		}
		if !all.Equal(s) {
			t.Fatalf("%v was divided and %v came out", s, all)
		}
	})
}

func TestTheWholeSpaceIsDividedEvenlyAtSlots(t *testing.T) {
	for n := 1; n <= 64; n++ {
		for i, part := range RangesOf(Whole).Divide(n) {
			if len(part) != 1 || part[0].First != part[0].First>>slotShift<<slotShift || part[0].Last != slotEnd(part[0].Last) {
				t.Fatalf("part %d of %d is %v", i, n, part)
			}
			slots := int(part[0].Last.Slot()) - int(part[0].First.Slot()) + 1
			if slots != record.PlaceSlots/n && slots != record.PlaceSlots/n+1 {
				t.Fatalf("part %d of %d has %d slots", i, n, slots)
			}
		}
	}
}

func TestNoSlotIsDivided(t *testing.T) {
	s := SlotsRange(5, 7)
	parts := RangesOf(s).Divide(7)
	var all Ranges
	for _, p := range parts {
		if len(p) > 0 && !p.Equal(RangesOf(SlotsRange(p[0].First.Slot(), p[0].Last.Slot()))) {
			t.Errorf("a part is %v", p)
		}
		all = all.Union(p)
	}
	if len(parts) != 7 || !all.Equal(RangesOf(s)) {
		t.Fatalf("got %v", parts)
	}
}

func TestRangesAreReadAsTheyAreWritten(t *testing.T) {
	s := RangesOf(Range{5, 9}, SlotsRange(16383, 16383))
	const want = `["0000000000000005-0000000000000009","fffc000000000000-ffffffffffffffff"]`
	text, err := json.Marshal(s)
	if err != nil || string(text) != want {
		t.Fatalf("%s, %v", text, err)
	}
	var back Ranges
	if err := json.Unmarshal(text, &back); err != nil || !back.Equal(s) {
		t.Fatalf("%v, %v", back, err)
	}
}

func TestWhatIsNoRangeIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "0-1", "0000000000000005:0000000000000009", "0000000000000009-0000000000000005",
		"000000000000000g-0000000000000009", "0000000000000005-000000000000000g", "+000000000000005-0000000000000009",
	} {
		var r Range
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, r)
		}
	}
}

// One of them in the metadata, and nobody could read those.
func TestWhatCouldNotBeReadIsNotWritten(t *testing.T) {
	backwards := Range{First: 2, Last: 1}
	if text, err := json.Marshal(Ranges{backwards}); err == nil {
		t.Errorf("%s was written", text)
	}
}

func TestFractionsAreSharesOfTheSpace(t *testing.T) {
	for _, c := range []struct {
		r    Range
		want float64
	}{{Whole, 1}, {SlotsRange(0, 8191), 0.5}, {SlotsRange(3, 3), 1.0 / 16384}} {
		if got := c.r.Fraction(); got != c.want {
			t.Errorf("%v is %v of the space, want %v", c.r, got, c.want)
		}
	}
}
