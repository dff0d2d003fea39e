package view

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"pgregory.net/rapid"
)

func TestSlotsAreShownWholeOrWithAllWhoOwnAPart(t *testing.T) {
	got := fmt.Sprint(threeNodes(t).Slots())
	const want = "[{0 99 [n1]} {100 100 [n2]} {101 199 [n1]} {200 200 [n2 n1]} {201 5460 [n1]} {5461 10921 [n2]} {10922 13652 [n1]} {13653 16383 [n4]}]"
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	if s := threeNodes(t).Slots(); !s[0].Whole() || s[3].Whole() {
		t.Fatal("slot 0 is whole and slot 200 is not")
	}
}

func TestTheLargestPartOfACutSlotComesFirst(t *testing.T) {
	m, err := Initial("n1")
	m = must(t, m, err)
	low, high := SlotsRange(7, 7).halves()
	high, _ = high.halves()
	m, err = m.Assign(RangesOf(Range{low.First + 1, low.Last}, high), "n2")
	m = must(t, m, err)
	if got := fmt.Sprint(m.Slots()); got != "[{0 6 [n1]} {7 7 [n2 n1]} {8 16383 [n1]}]" {
		t.Fatal(got)
	}
}

func TestEverySlotIsShownOnceWithExactlyItsOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := Initial("n1", "n2")
		m = must(t, m, err)
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			to := rapid.SampledFrom([]NodeID{"n1", "n2", "n3"}).Draw(t, "to")
			m, err = m.Assign(RangesOf(drawRange(t, "range")), to)
			m = must(t, m, err)
		}
		next := 0
		for _, s := range m.Slots() {
			if int(s.First) != next || s.Last < s.First || !s.Whole() && s.First != s.Last {
				t.Fatalf("after slot %d comes %v", next-1, s)
			}
			next = int(s.Last) + 1
			checkOwners(t, m, s)
		}
		if next != record.PlaceSlots {
			t.Fatalf("%d slots are shown", next)
		}
	})
}

func checkOwners(t *rapid.T, m Map, s Slots) {
	places := RangesOf(SlotsRange(s.First, s.Last))
	for _, n := range m.Nodes() {
		owns := len(m.Ranges(n).Intersect(places)) > 0
		if owns != slices.Contains(s.Owners, n) {
			t.Fatalf("%s owns a part of %v: %v", n, s, owns)
		}
	}
}
