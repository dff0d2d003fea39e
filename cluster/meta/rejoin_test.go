package meta

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
)

// emptied is a node that comes back with another data directory than it had.
func emptied(n Node) Node {
	n.Log, n.Replicas = n.Log+1000, n.Replicas+1000
	return n
}

// joinAs is join of a node that has something particular. It is gone with the test at the latest.
func joinAs(t *testing.T, s *Store, n Node) *Member {
	t.Helper()
	m, err := s.Join(patience(t), n)
	ok(t, err)
	t.Cleanup(func() { _ = m.Lease.Close(patience(t)) })
	return m
}

// It owns what was in its former log. If it joined now, it would serve an empty one in its place.
func TestANodeThatLostItsLogJoinsOnlyAfterOthersHaveTakenThatOver(t *testing.T) {
	s, members, term := three(t)
	kill(t, members[2])
	anew := emptied(members[2].Node)
	_, err := s.Join(patience(t), anew)
	wantError(t, err, "n3 has lost its log")
	if !errors.Is(err, ErrLogGone) || read(t, s).alive("n3") {
		t.Fatalf("it has joined: %v", err)
	}
	_, err = term.Recover(patience(t), "n3", "n1", "n2")
	ok(t, err)
	joinAs(t, s, anew)
	if got := read(t, s).Map.Ranges("n3"); len(got) != 0 {
		t.Fatalf("it owns %v", got)
	}
}

// Nobody would ever take over a log that has nothing: it would be held, and counted on, for ever.
func TestTheFormerLogOfANodeThatOwnedNothingIsRetired(t *testing.T) {
	s, _, term := three(t)
	m := join(t, s, "n4")
	former := m.Node.Log
	kill(t, m)
	m = joinAs(t, s, emptied(m.Node))
	if got := read(t, s); !got.Logs[former].Retired || got.Logs[m.Node.Log].Retired {
		t.Fatalf("the former log is %+v, the new one %+v", got.Logs[former], got.Logs[m.Node.Log])
	}
	kill(t, m)
	ok(t, term.Remove(patience(t), "n4"))
	if l := read(t, s).Logs[m.Node.Log]; !l.Retired {
		t.Fatalf("the log of a removed node is %+v", l)
	}
}

// A backup that comes back without its replicas answers, and has nothing: that is no answer for what it had.
func TestWhoLostItsReplicasIsMissingThoughItAnswers(t *testing.T) {
	s, members, _ := three(t)
	m := members[0]
	for _, b := range []view.NodeID{"n2", "n4"} {
		ok(t, m.AddBackup(patience(t), b))
	}
	ok(t, m.SetCopies(patience(t), 2))
	n4 := nodeNamed("n4")
	n4.Replicas = 7
	fourth := joinAs(t, s, n4)
	recoverable := func(answered ...view.NodeID) string {
		waitFor, can := read(t, s).Recoverable(m.Node.Log, func(n view.NodeID) bool { return slices.Contains(answered, n) })
		return fmt.Sprint(waitFor, can)
	}
	if got := recoverable("n4"); got != "[] true" {
		t.Fatalf("with n4 it is %s", got)
	}
	kill(t, fourth)
	fourth = joinAs(t, s, n4) // It was only restarted.
	if got := recoverable("n4"); got != "[] true" {
		t.Fatalf("with n4 after a restart it is %s", got)
	}
	kill(t, fourth)
	n4.Replicas = 8
	joinAs(t, s, n4)
	if got := recoverable("n4"); got != "[n1 n2] false" {
		t.Fatalf("with n4, which has lost its replicas, it is %s", got)
	}
	absent := read(t, s).Absent(read(t, s).Logs[m.Node.Log])
	if len(absent) != 1 || !IsGhost(absent[0]) || GhostOf(absent[0]) != "n4" {
		t.Fatalf("absent are %v", absent)
	}
	ok(t, m.ExcludeBackup(patience(t), absent[0]))
	if got := recoverable("n4"); got != "[] true" {
		t.Fatalf("after the primary made its copies anew it is %s", got)
	}
}
