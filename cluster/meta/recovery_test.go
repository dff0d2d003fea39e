package meta

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

func TestARecoveryIsDoneWhenAllHeirsAre(t *testing.T) {
	s, members, term := three(t)
	_, err := term.Recover(patience(t), "n3", "n1")
	wantError(t, err, "n3 is alive")
	lost := members[2].mine(t)
	kill(t, members[2])
	if dead := fmt.Sprint(read(t, s).Dead()); dead != "[n3]" {
		t.Fatalf("dead are %s", dead)
	}
	_, err = term.Recover(patience(t), "n3", "n1", "n9")
	wantError(t, err, "n9 is not alive")
	r, err := term.Recover(patience(t), "n3", "n1", "n2")
	ok(t, err)
	if len(r.Parts) != 2 || !r.Parts[0].Ranges.Union(r.Parts[1].Ranges).Equal(lost) {
		t.Fatalf("%v was lost, the parts are %v", lost, r.Parts)
	}
	_, err = members[0].Move(patience(t), r.Parts[0].Ranges, "n2", 1)
	wantError(t, err, "is still on its way to n1")
	ok(t, members[0].Recovered(patience(t), all(r.Log)))
	wantError(t, term.Finish(patience(t), r.Log), "the recovery of n3 goes on")
	ok(t, members[1].Recovered(patience(t), all(r.Log)))
	ok(t, term.Finish(patience(t), r.Log))
	wantError(t, members[1].Recovered(patience(t), all(r.Log)), "it has ended")

	_, err = s.Join(patience(t), nodeNamed("n3"))
	wantError(t, err, "start it with an empty data directory")
	ok(t, term.Remove(patience(t), "n3"))
	got := read(t, s)
	if _, known := got.Nodes["n3"]; known || got.Map.ViewID("n3") != 2 {
		t.Fatalf("n3 is known: %v, its view is %d", known, got.Map.ViewID("n3"))
	}
}

func TestAnotherCoordinatorGoesOnWhenAnHeirDiesHalfWay(t *testing.T) {
	s, members, term := three(t)
	fourth := join(t, s, "n4")
	kill(t, members[2])
	first, err := term.Recover(patience(t), "n3", "n1", "n2")
	ok(t, err)
	ok(t, members[1].Recovered(patience(t), all(first.Log)))
	kill(t, members[0]) // an heir, and the coordinator
	next := campaign(t, fourth)
	_, err = next.Recover(patience(t), "n1", "n2", "n4")
	ok(t, err)
	r := read(t, s).Recoveries[first.Log]
	var pending view.Ranges
	for _, p := range r.Parts {
		if p.Heir == "n1" {
			t.Fatalf("the dead heir still has %v", p.Ranges)
		}
		if !p.Done {
			pending = pending.Union(p.Ranges)
			if got := read(t, s).Map.Ranges(p.Heir); !got.Covers(p.Ranges) {
				t.Fatalf("%s shall replay %v and does not own it", p.Heir, p.Ranges)
			}
		}
	}
	if !pending.Equal(first.Parts[0].Ranges) {
		t.Fatalf("n1 had %v to replay, now it is %v", first.Parts[0].Ranges, pending)
	}
	for _, log := range []*Member{members[0], members[2]} {
		for _, heir := range []*Member{members[1], fourth} {
			ok(t, heir.Recovered(patience(t), all(log.Node.Log)))
		}
		ok(t, next.Finish(patience(t), log.Node.Log))
	}
	if left := read(t, s).Recoveries; len(left) != 0 {
		t.Fatalf("left are %v", left)
	}
}

func TestAMigrationEndsWithItsTarget(t *testing.T) {
	s, members, term := three(t)
	slots := view.RangesOf(view.SlotsRange(0, 9))
	l, err := members[0].Move(patience(t), slots, "n3", 7)
	ok(t, err)
	kill(t, members[2])
	r, err := term.Recover(patience(t), "n3", "n2")
	ok(t, err)
	got := read(t, s)
	if !got.Map.Ranges("n1").Covers(slots) || len(got.Lineages) != 0 || len(r.Yielding) != 0 {
		t.Fatalf("n1 has %v, lineages %v, yielding %v", got.Map.Ranges("n1"), got.Lineages, r.Yielding)
	}
	if len(r.Lineages) != 1 || keyLineage(r.Lineages[0]) != keyLineage(l) || r.Parts[0].Heir != "n1" || !r.Parts[0].Ranges.Equal(slots) {
		t.Fatalf("the source does not replay the target's tail: %+v", r)
	}
}

func TestAMigrationEndsWithItsSource(t *testing.T) {
	s, members, term := three(t)
	_, err := members[2].Move(patience(t), members[2].mine(t), "n2", 7)
	ok(t, err)
	kill(t, members[2])
	if dead := fmt.Sprint(read(t, s).Dead()); dead != "[n3]" {
		t.Fatalf("a source that owns nothing and whose log is needed: dead are %s", dead)
	}
	r, err := term.Recover(patience(t), "n3", "n1", "n2")
	ok(t, err)
	if fmt.Sprint(r.Yielding) != "[n2]" || len(r.Lineages) != 1 {
		t.Fatalf("the living target is not asked to yield: %+v", r)
	}
	if got := read(t, s); len(got.Lineages) != 0 || len(got.Map.Ranges("n3")) != 0 {
		t.Fatalf("n3 has %v", got.Map.Ranges("n3"))
	}
}

// all is everything that an heir may have to replay of a log.
func all(log record.LogID) Share { return Share{log, view.RangesOf(view.Whole)} }

func TestAnHeirIsDoneWithWhatItReplayedOnly(t *testing.T) {
	s, members, term := three(t)
	fourth := join(t, s, "n4")
	kill(t, members[2])
	first, err := term.Recover(patience(t), "n3", "n1", "n2")
	ok(t, err)
	// n2 has its part and is about to say so when it gets a part of n1's, too.
	mine := first.Parts[1].Ranges
	kill(t, members[0])
	next := campaign(t, fourth)
	_, err = next.Recover(patience(t), "n1", "n2")
	ok(t, err)
	ok(t, members[1].Recovered(patience(t), Share{first.Log, mine}))
	got := read(t, s)
	if r := got.Recoveries[first.Log]; r.Done() || !got.Arriving("n2").Covers(first.Parts[0].Ranges) {
		t.Fatalf("what n2 did not replay is done: %+v", r)
	}
	if got.Arriving("n2").Intersect(mine) != nil {
		t.Fatalf("what n2 replayed is not done: %+v", got.Recoveries)
	}
	ok(t, members[1].Recovered(patience(t), all(first.Log), all(members[0].Node.Log)))
	if left := read(t, s).Arriving("n2"); left != nil {
		t.Fatalf("left is %v", left)
	}
}
