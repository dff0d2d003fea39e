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
	early := wanted(t, s, "n1", "n2", r.Parts[0].Ranges)
	_, err = members[0].Move(patience(t), early.ID, members[1].Asks(1, 1))
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

// all is everything that an heir may have to replay of a log.
func all(log record.LogID) Share { return Share{Log: log, Ranges: view.RangesOf(view.Whole)} }

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
	ok(t, members[1].Recovered(patience(t), Share{Log: first.Log, Ranges: mine}))
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

func TestAPartThatIsServedIsNeededUntilItIsDone(t *testing.T) {
	s, members, term := three(t)
	kill(t, members[2])
	r, err := term.Recover(patience(t), "n3", "n1", "n2")
	ok(t, err)
	part := r.Parts[0].Ranges
	ok(t, members[0].Serving(patience(t), all(r.Log)))
	got := read(t, s)
	if rec := got.Recoveries[r.Log]; rec.Served() || rec.Done() || !rec.Parts[0].Served || rec.Parts[1].Served {
		t.Fatalf("n1 serves its part: %+v", rec)
	}
	if !got.Inheriting("n1").Equal(part) || got.Unserved("n1") != nil || !got.Unserved("n2").Equal(r.Parts[1].Ranges) {
		t.Fatalf("n1 inherits %v, unserved are %v and %v", got.Inheriting("n1"), got.Unserved("n1"), got.Unserved("n2"))
	}
	early := wanted(t, s, "n1", "n2", part)
	_, err = members[0].Move(patience(t), early.ID, members[1].Asks(1, 1))
	wantError(t, err, "is still on its way to n1")
	ok(t, members[1].Serving(patience(t), all(r.Log)))
	if rec := read(t, s).Recoveries[r.Log]; !rec.Served() || rec.Done() {
		t.Fatalf("both serve: %+v", rec)
	}
	wantError(t, term.Finish(patience(t), r.Log), "the recovery of n3 goes on")

	// Who joins again may have to replay again.
	kill(t, members[1])
	again := join(t, s, "n2")
	if rec := read(t, s).Recoveries[r.Log]; !rec.Parts[0].Served || rec.Parts[1].Served {
		t.Fatalf("n2 joined again: %+v", rec)
	}
	ok(t, again.Serving(patience(t), all(r.Log)))
	ok(t, again.Recovered(patience(t), all(r.Log)))
	ok(t, members[0].Recovered(patience(t), all(r.Log)))
	ok(t, term.Finish(patience(t), r.Log))
	wantError(t, again.Serving(patience(t), all(r.Log)), "it has ended")
}
