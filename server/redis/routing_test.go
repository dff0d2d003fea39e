package redis

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// drawRanges draws ranges that begin and end at, or near, borders of a few slots.
func drawRanges(t *rapid.T, name string) view.Ranges {
	slots := []uint16{0, 1, 2, 5460, 8191, 8192, 16383}
	var rs []view.Range
	for range rapid.IntRange(0, 3).Draw(t, name) {
		a, b := rapid.SampledFrom(slots).Draw(t, name), rapid.SampledFrom(slots).Draw(t, name)
		g := view.SlotsRange(min(a, b), max(a, b))
		if rapid.Bool().Draw(t, name) {
			g.First += 7
		}
		if rapid.Bool().Draw(t, name) {
			g.Last -= 9
		}
		rs = append(rs, g)
	}
	return view.RangesOf(rs...)
}

// expected is what the definition says of a place, one look at a time.
func expected(self view.NodeID, m view.Map, s RoutingState, p record.Place) slotState {
	owner, _ := m.Owner(p)
	switch {
	case owner == "":
		return slotNobody
	case owner != self && s.Importing[0].Ranges.Contains(p):
		return slotImporting
	case owner != self:
		return slotElsewhere
	case s.Recovering.Contains(p):
		return slotRecovering
	case s.Exporting[0].Ranges.Contains(p):
		return slotExporting
	}
	return slotMine
}

func TestARoutingAgreesWithItsMapAtEveryBorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := view.Initial("a", "b")
		if err == nil && rapid.Bool().Draw(t, "moved") {
			if more := drawRanges(t, "map"); len(more) > 0 {
				m, err = m.Assign(more, "b")
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if rapid.IntRange(0, 9).Draw(t, "empty") == 0 {
			m = view.Map{}
		}
		s := RoutingState{
			Recovering: drawRanges(t, "recovering"),
			Exporting:  []Migration{{drawRanges(t, "exporting"), "b"}},
			Importing:  []Migration{{drawRanges(t, "importing"), "b"}},
		}
		r := NewRouting("a", m, nil, s)
		for _, slot := range []uint16{0, 1, 2, 3, 5459, 5460, 5461, 8190, 8191, 8192, 8193, 16382, 16383} {
			g := view.SlotsRange(slot, slot)
			for _, p := range []record.Place{g.First, g.First + 6, g.First + 7, g.First + 1000, g.Last - 9, g.Last - 8, g.Last} {
				want := expected("a", m, s, p)
				if got := r.part(p).state; got != want {
					t.Fatalf("place %x is in state %d, want %d", uint64(p), got, want)
				}
				if got := r.slots[slot]; got != slotCut && got != want {
					t.Fatalf("slot %d is in state %d, place %x in %d", slot, got, uint64(p), want)
				}
				if r.Serves(p) != (want == slotMine) {
					t.Fatalf("place %x: serves %v in state %d", uint64(p), r.Serves(p), want)
				}
			}
		}
	})
}

func TestAWholeSlotIsNeverCalledCut(t *testing.T) {
	m, err := view.Initial("a", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	r := NewRouting("b", m, nil, RoutingState{})
	for slot, state := range r.slots {
		if state == slotCut {
			t.Fatalf("slot %d counts as cut", slot)
		}
	}
}

func BenchmarkServes(b *testing.B) {
	m, err := view.Initial("a", "b", "c")
	if err != nil {
		b.Fatal(err)
	}
	r, p := NewRouting("b", m, nil, RoutingState{}), record.Place(0)
	for b.Loop() {
		r.Serves(p)
		p += 0x9e3779b97f4a7c15
	}
}
