package server

import (
	"math"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

func TestWhatBothSidesOfAMigrationLeftIsReplayedTogether(t *testing.T) {
	low, high := view.RangesOf(view.SlotsRange(0, 99)), view.RangesOf(view.SlotsRange(200, 299))
	s := &meta.Snapshot{
		Recoveries: map[record.LogID]meta.Recovery{
			1: {Log: 1, Plan: &meta.Plan{Cut: 5}, Parts: []meta.Part{{Heir: "a", Ranges: low}, {Heir: "b", Ranges: high}}},
			2: {Log: 2, Plan: &meta.Plan{Cut: 6}, Parts: []meta.Part{{Heir: "a", Ranges: low.Union(high), Done: true}}},
		},
		Returns: map[uint64]meta.Recovery{
			7: {Log: 3, Return: 7, Plan: &meta.Plan{Cut: 9}, Parts: []meta.Part{{Heir: "a", Ranges: low}}},
			8: {Log: 3, Return: 8, Plan: &meta.Plan{Cut: 9}, Parts: []meta.Part{{Heir: "a", Ranges: high}}},
		},
	}
	groups := legacies(s, "a")
	if len(groups) != 2 {
		t.Fatalf("a replays %v", groups)
	}
	for _, g := range groups {
		want := 1
		if g.ranges().Equal(low) {
			want = 2
		}
		if len(g) != want {
			t.Errorf("%v is replayed from %v", g.ranges(), g)
		}
	}
	unplanned := s.Recoveries[1]
	unplanned.Plan = nil
	s.Recoveries[1] = unplanned
	if groups := legacies(s, "a"); len(groups) != 1 || groups[0][0].Return != 8 {
		t.Fatalf("one log of a place has no plan, and a replays %v", groups)
	}
}

func TestHeirsTogetherReplayALogOnce(t *testing.T) {
	r := meta.Recovery{Parts: []meta.Part{
		{Heir: "a", Ranges: view.RangesOf(view.SlotsRange(0, 99))},
		{Heir: "b", Ranges: view.RangesOf(view.SlotsRange(200, 299), view.SlotsRange(400, 599))},
	}}
	const log = 4000
	sum := 0.0
	for i, want := range []float64{1000, 3000} {
		part := log * partOf(r, meta.Share{Ranges: r.Parts[i].Ranges})
		if math.Abs(part-want) > 1 {
			t.Errorf("%s takes %.0f of %d bytes, want %.0f", r.Parts[i].Heir, part, log, want)
		}
		sum += part
	}
	if math.Abs(sum-log) > 1 {
		t.Errorf("together they take %.0f of %d bytes", sum, log)
	}
}

func TestALivingLogIsReplayedToItsEnd(t *testing.T) {
	plan := &meta.Plan{Cut: 5}
	if got := upTo(meta.Recovery{Plan: plan}); got != 5 {
		t.Errorf("a dead log is replayed up to %d", got)
	}
	if got := upTo(meta.Recovery{Plan: plan, Return: 1}); got != replica.AllBatches {
		t.Errorf("a living log is replayed up to %d: its cleaner may have moved records beyond that", got)
	}
}

func TestAFloorIsSpentWhenNothingLiesBelowIt(t *testing.T) {
	floors := []meta.Floor{{Segment: 5}, {Segment: 9}}
	for oldest, want := range map[record.SegmentID]bool{4: false, 5: true, 9: true} {
		if spent(floors, oldest) != want {
			t.Errorf("with segments from %d on: %v", oldest, !want)
		}
	}
}
