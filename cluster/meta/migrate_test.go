package meta

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

func wanted(t *testing.T, s *Store, from, to view.NodeID, ranges view.Ranges) Migration {
	t.Helper()
	m, err := s.Migrate(patience(t), MigrationRequest{Source: from, Target: to, Ranges: ranges})
	ok(t, err)
	return m
}

// moved is a migration that is under way.
func moved(t *testing.T, source, target *Member, ranges view.Ranges) Migration {
	t.Helper()
	m := wanted(t, source.store, source.Node.ID, target.Node.ID, ranges)
	m, err := source.Move(patience(t), m.ID, target.Asks(42, 7))
	ok(t, err)
	return m
}

func slots(first, last uint16) view.Ranges { return view.RangesOf(view.SlotsRange(first, last)) }

func TestAMoveRaisesBothViewsAndSetsAFloor(t *testing.T) {
	s, members, _ := three(t)
	m := moved(t, members[0], members[1], slots(0, 99))
	got := read(t, s)
	if got.Map.ViewID("n1") != 2 || got.Map.ViewID("n2") != 2 || got.Map.ViewID("n3") != 1 || !got.Map.Ranges("n2").Covers(slots(0, 99)) {
		t.Fatalf("the map is %v", got.Map)
	}
	if diff := cmp.Diff([]Migration{m}, got.Incoming("n2")); diff != "" || len(got.Outgoing("n1")) != 1 || m.Stage != Moving {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]Floor{{Ranges: slots(0, 99), Batch: 42, Segment: 7}}, got.Logs[members[1].Node.Log].Floors); diff != "" {
		t.Fatal(diff)
	}
	if !got.Arriving("n2").Equal(slots(0, 99)) || !got.Holds("n1").Covers(slots(0, 99)) {
		t.Fatalf("arriving is %v, n1 holds %v", got.Arriving("n2"), got.Holds("n1"))
	}
	again, err := members[0].Move(patience(t), m.ID, members[1].Asks(99, 99))
	ok(t, err)
	if diff := cmp.Diff(m, again); diff != "" {
		t.Fatal(diff)
	}
	wantError(t, members[0].CompleteMigration(patience(t), m.ID, MigrationStats{}), "not for n1 to end")
	ok(t, members[1].CompleteMigration(patience(t), m.ID, MigrationStats{Records: 3, Bytes: 4}))
	got = read(t, s)
	if m := got.Migrations[m.ID]; m.Stage != Done || m.Records != 3 || m.Bytes != 4 || m.Ended.IsZero() {
		t.Fatalf("%+v", m)
	}
	wantError(t, members[1].CompleteMigration(patience(t), m.ID, MigrationStats{}), "has ended")
}

func TestAChainOfMigrationsGoesInOrder(t *testing.T) {
	s, members, _ := three(t)
	first := wanted(t, s, "n1", "n2", slots(0, 99))
	second := wanted(t, s, "n2", "n3", slots(50, 60))
	_, err := members[1].Move(patience(t), second.ID, members[2].Asks(1, 1))
	wantError(t, err, fmt.Sprintf("migration %d of the same places goes first", first.ID))
	if !errors.Is(err, ErrNotYet) {
		t.Fatalf("%v is no reason to wait", err)
	}
	_, err = members[0].Move(patience(t), first.ID, members[1].Asks(1, 1))
	ok(t, err)
	ok(t, members[1].CompleteMigration(patience(t), first.ID, MigrationStats{}))
	_, err = members[1].Move(patience(t), second.ID, members[2].Asks(1, 1))
	ok(t, err)
	ok(t, members[2].CompleteMigration(patience(t), second.ID, MigrationStats{}))

	back := wanted(t, s, "n3", "n2", slots(50, 60))
	_, err = members[2].Move(patience(t), back.ID, members[1].Asks(1, 1))
	wantError(t, err, "n2 has not yet dropped what it had")
	ok(t, members[1].Retracted(patience(t), slots(0, 16383), 9, 5))
	_, err = members[2].Move(patience(t), back.ID, members[1].Asks(20, 8))
	ok(t, err)
	want := []Floor{{Ranges: slots(0, 99).Subtract(slots(50, 60)), Batch: 1, Segment: 1}, {Ranges: slots(50, 60), Batch: 20, Segment: 8}}
	if diff := cmp.Diff(want, read(t, s).Logs[members[1].Node.Log].Floors); diff != "" {
		t.Fatal(diff)
	}
	ok(t, members[1].DropFloors(patience(t), 7))
	if diff := cmp.Diff(want[1:], read(t, s).Logs[members[1].Node.Log].Floors); diff != "" {
		t.Fatal(diff)
	}
}

func TestAMigrationThatIsNotDoneTellsWhatHadCome(t *testing.T) {
	s, members, term := three(t)
	for _, end := range []func(m Migration){
		func(m Migration) {
			ok(t, members[1].Return(patience(t), m.ID, Plan{}, "the line is bad"))
			ok(t, members[0].Recovered(patience(t), Share{Log: members[1].Node.Log, Ranges: m.Ranges, Return: m.ID}))
		},
		func(Migration) {
			kill(t, members[1])
			_, err := term.Recover(patience(t), "n2", "n1")
			ok(t, err)
		},
	} {
		m := moved(t, members[0], members[1], slots(uint16(len(read(t, s).Migrations)), uint16(len(read(t, s).Migrations))))
		ok(t, members[1].TellMigration(patience(t), MigrationProgress{ID: m.ID, Stage: "pulling", Records: 3, Bytes: 300}))
		end(m)
		if got := read(t, s).Migrations[m.ID]; got.Stage != Failed || got.Records != 3 || got.Bytes != 300 {
			t.Fatalf("%+v", got)
		}
	}
}

func TestACancelledMigrationReturnsToItsSource(t *testing.T) {
	s, members, _ := three(t)
	never := wanted(t, s, "n3", "n1", members[2].mine(t))
	ok(t, s.CancelMigration(patience(t), never.ID))
	if got := read(t, s).Migrations[never.ID]; got.Stage != Cancelled {
		t.Fatalf("%+v", got)
	}
	m := moved(t, members[0], members[1], slots(0, 99))
	ok(t, s.CancelMigration(patience(t), m.ID))
	if got := read(t, s).Migrations[m.ID]; got.Stage != Moving || !got.Cancel {
		t.Fatalf("%+v", got)
	}
	wantError(t, members[1].FailMigration(patience(t), m.ID, "why"), "can be cancelled only")
	wantError(t, members[1].CompleteMigration(patience(t), m.ID, MigrationStats{}), "was cancelled")
	ok(t, members[1].Return(patience(t), m.ID, Plan{Cut: 77, Roster: 5}, ""))
	got := read(t, s)
	want := map[uint64]Recovery{m.ID: {Node: "n2", Log: members[1].Node.Log, Return: m.ID, Plan: &Plan{Cut: 77, Roster: 5}, Parts: []Part{{Heir: "n1", Ranges: slots(0, 99)}}}}
	if diff := cmp.Diff(want, got.Returns); diff != "" || !got.Arriving("n1").Equal(slots(0, 99)) || !got.Holds("n2").Covers(slots(0, 99)) {
		t.Fatal(diff)
	}
	ok(t, members[0].Recovered(patience(t), Share{Log: members[1].Node.Log, Ranges: slots(0, 99), Return: m.ID}))
	got = read(t, s)
	if got.Migrations[m.ID].Stage != Cancelled || len(got.Returns) != 0 || got.Arriving("n1") != nil || !got.Logs[members[1].Node.Log].Leaving.Equal(slots(0, 99)) {
		t.Fatalf("%+v", got.Migrations[m.ID])
	}
}

func TestAMigrationThatItsTargetReturnsByItselfHasFailedAndSaysWhy(t *testing.T) {
	for cancelled, want := range map[bool]Migration{
		false: {Stage: Failed, Why: "nothing came; what it had was returned"},
		true:  {Stage: Cancelled, Why: "its target returned what it had"},
	} {
		t.Run(fmt.Sprintf("cancelled %t", cancelled), func(t *testing.T) {
			s, members, _ := three(t)
			m := moved(t, members[0], members[1], slots(0, 99))
			if cancelled {
				ok(t, s.CancelMigration(patience(t), m.ID))
			}
			ok(t, members[1].Return(patience(t), m.ID, Plan{}, "nothing came"))
			ok(t, members[0].Recovered(patience(t), Share{Log: members[1].Node.Log, Ranges: slots(0, 99), Return: m.ID}))
			got := read(t, s)
			if end := got.Migrations[m.ID]; end.Stage != want.Stage || end.Why != want.Why || !got.Map.Ranges("n1").Covers(slots(0, 99)) {
				t.Errorf("it is %s, since %s", end.Stage, end.Why)
			}
		})
	}
}

func TestAMigrationEndsWithItsTarget(t *testing.T) {
	s, members, term := three(t)
	m := moved(t, members[0], members[2], slots(0, 9))
	kill(t, members[2])
	r, err := term.Recover(patience(t), "n3", "n2")
	ok(t, err)
	got := read(t, s)
	if !got.Map.Ranges("n1").Covers(slots(0, 9)) || got.Migrations[m.ID].Stage != Failed || r.Parts[0].Heir != "n1" || !r.Parts[0].Ranges.Equal(slots(0, 9)) {
		t.Fatalf("the source does not replay the target's log: %+v", r)
	}
}

func TestAMigrationEndsWithItsSource(t *testing.T) {
	s, members, term := three(t)
	mine := members[2].mine(t)
	m := moved(t, members[2], members[1], mine)
	kill(t, members[2])
	if dead := fmt.Sprint(read(t, s).Dead()); dead != "[n3]" {
		t.Fatalf("a source that owns nothing and whose log is needed: dead are %s", dead)
	}
	r, err := term.Recover(patience(t), "n3", "n1", "n2")
	ok(t, err)
	got := read(t, s)
	if len(r.Parts) != 1 || r.Parts[0].Heir != "n2" || !got.Map.Ranges("n2").Covers(mine) || got.Migrations[m.ID].Stage != Done {
		t.Fatalf("the target does not replay the source's log: %+v", r)
	}
}

// The numbers of a question are of the log that its target had then.
func TestAQuestionOfATargetThatHasJoinedAgainSinceCountsForNothing(t *testing.T) {
	s, members, _ := three(t)
	target := join(t, s, "n4")
	m := wanted(t, s, "n1", "n4", slots(0, 99))
	asked := target.Asks(100_000, 900)
	kill(t, target)
	again := joinAs(t, s, emptied(target.Node))
	_, err := members[0].Move(patience(t), m.ID, asked)
	if wantError(t, err, "n4 has joined again since it asked"); !errors.Is(err, ErrNotYet) {
		t.Fatalf("%v is no reason to ask again", err)
	}
	_, err = members[0].Move(patience(t), m.ID, Asked{From: 1})
	if wantError(t, err, "update it"); errors.Is(err, ErrNotYet) {
		t.Fatalf("%v passes by itself", err)
	}
	if got := read(t, s); got.Migrations[m.ID].Stage != Wanted || len(got.Logs[again.Node.Log].Floors) > 0 {
		t.Fatalf("it is %s, and the new log has floors: %v", got.Migrations[m.ID].Stage, got.Logs[again.Node.Log].Floors)
	}
	_, err = members[0].Move(patience(t), m.ID, again.Asks(1, 1))
	ok(t, err)
}

func TestOfTwoMovesOfOneRangeOneWins(t *testing.T) {
	s, members, _ := three(t)
	slots := members[0].mine(t).AtSlots()
	for i := range 10 {
		var won atomic.Int32
		var all sync.WaitGroup
		for _, to := range members[1:] {
			m := wanted(t, s, "n1", to.Node.ID, view.RangesOf(slots[i]))
			all.Go(func() {
				if _, err := members[0].Move(patience(t), m.ID, to.Asks(1, record.SegmentID(i))); err == nil {
					won.Add(1)
				}
			})
		}
		all.Wait()
		if got := read(t, s).Map.ViewID("n1"); won.Load() != 1 || got != view.ViewID(i+2) {
			t.Fatalf("%d moves won, n1 is in view %d", won.Load(), got)
		}
	}
}
