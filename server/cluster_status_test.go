package server

import (
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// What the ledger says of copies counts those at nodes that are gone until others were made.
func TestALogWhoseBackupIsGoneIsDegradedUntilItsCopiesAreElsewhere(t *testing.T) {
	owners, err := view.Initial("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		backups  []view.NodeID
		degraded bool
	}{
		{[]view.NodeID{"b", "c"}, false},
		{[]view.NodeID{"b", "c", "dead"}, true},
		{[]view.NodeID{"b", "c", "b~00000001"}, true}, // It lost what it had, and lives.
	} {
		s := &meta.Snapshot{
			Settings: meta.Settings{Replicas: 3}, Map: owners, Coordinator: "a",
			Nodes: map[view.NodeID]meta.Node{"a": {ID: "a", Log: 1}, "b": {ID: "b"}, "c": {ID: "c"}, "dead": {ID: "dead"}},
			Alive: map[view.NodeID]meta.Presence{"a": {}, "b": {}, "c": {}},
			Logs:  map[record.LogID]meta.Log{1: {ID: 1, Node: "a", Copies: 2, Backups: c.backups}},
		}
		status := StatusOf(s, nil, nil)
		told := strings.Contains(strings.Join(status.Problems, "\n"), "are being made anew")
		if len(status.Logs) != 1 || status.Logs[0].Degraded != c.degraded || told != c.degraded {
			t.Errorf("with backups %v: %+v, problems %q", c.backups, status.Logs, status.Problems)
		}
	}
}

func TestALogWithTooFewCopiesSaysHowFarTheyAreOrWhatToDo(t *testing.T) {
	node := func(id view.NodeID, alive bool) NodeStatus {
		return NodeStatus{ID: id, Alive: alive, Facts: &NodeFacts{ThinSegments: 40, CopiesLeft: 5 * time.Second}}
	}
	enough := ClusterStatus{Nodes: []NodeStatus{node("a", true), node("b", true), node("c", true), node("d", false)}}
	few := ClusterStatus{Nodes: []NodeStatus{node("a", true), node("b", true), node("c", false)}}
	silent := ClusterStatus{Nodes: []NodeStatus{{ID: "a", Alive: true}, node("b", true), node("c", true)}}
	lost := LogStatus{Node: "a", Copies: 2, Wanted: 2, Absent: []view.NodeID{"d"}}
	for _, c := range []struct {
		in   ClusterStatus
		log  LogStatus
		want string
	}{
		{enough, lost, "copies of the log of a that were at [d] are being made anew: 40 to go, about 5s"},
		{enough, LogStatus{Node: "a", Copies: 1, Wanted: 2}, "the log of a has 1 copies elsewhere, not 2: 40 to go, about 5s"},
		{few, LogStatus{Node: "a", Copies: 1, Wanted: 2}, "the log of a has 1 copies elsewhere, not 2; start nodes, for 1 others are too few"},
		{silent, lost, "copies of the log of a that were at [d] are being made anew"},
	} {
		if got := c.in.degraded(c.log); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestClocksThatAreFarApartAreAProblem(t *testing.T) {
	now := time.Now()
	at := func(id view.NodeID, ahead time.Duration) NodeStatus {
		return NodeStatus{ID: id, Alive: true, Facts: &NodeFacts{Clock: now.Add(ahead)}}
	}
	silent := []NodeStatus{{ID: "d", Alive: true}, {ID: "e", Alive: true, Facts: new(NodeFacts)}}
	for _, c := range []struct {
		ahead time.Duration
		want  bool
	}{{time.Second, false}, {3 * time.Minute, true}, {-3 * time.Minute, true}} {
		status := ClusterStatus{Nodes: append(silent, at("a", 0), at("b", c.ahead), at("c", c.ahead/2))}
		told := strings.Join(status.problems(), "\n")
		if got := strings.Contains(told, " is 3m0s ahead of that of "); got != c.want {
			t.Errorf("with a clock %s ahead: %s", c.ahead, told)
		}
	}
}

func TestTheTimeThatCopiesTakeIsRightForLargeLogs(t *testing.T) {
	if got, want := copiesTake(100_000, 8<<20), 12_500*time.Second; got != want {
		t.Errorf("800 GB take %v, want %v", got, want)
	}
}

func TestARecoveryThatIsServedTellsOfItsCopies(t *testing.T) {
	s := &meta.Snapshot{Progress: map[record.LogID]map[string]meta.Progress{7: {
		meta.TheCoordinator: {Stage: "replaying"},
		"b":                 {Stage: stageCopying, Done: 30, Total: 40, Began: time.Unix(0, 0), At: time.Unix(3, 0)},
		"c":                 {Stage: "replaying", Done: 40, Total: 40},
	}}}
	for _, c := range []struct {
		parts []meta.Part
		stage string
	}{
		{[]meta.Part{{Heir: "b", Served: true}, {Heir: "c"}}, "replaying"},
		{[]meta.Part{{Heir: "b", Served: true}, {Heir: "c", Done: true}}, stageCopying},
	} {
		got := recoveryStatus(s, meta.Recovery{Node: "a", Log: 7, Parts: c.parts})
		if got.Stage != c.stage || got.Done != 70 || got.Total != 80 || got.Left != time.Second {
			t.Errorf("with parts %+v: %+v", c.parts, got)
		}
	}
}

func TestProgressCountsFromWhereItsStageBegan(t *testing.T) {
	r, earlier := &replaying{}, time.Now().Add(-time.Hour)
	r.stage.Store(&meta.Progress{Stage: "asking", Began: earlier})
	r.at("asking", 0, 0)
	if now := r.stage.Load(); now.Began != earlier {
		t.Errorf("it goes on since %v: %+v", earlier, now)
	}
	r.at("replaying", 1, 10)
	if now := r.stage.Load(); !now.Began.After(earlier) || now.Done != 1 {
		t.Errorf("it has just begun: %+v", now)
	}
}

func TestBytesThatHaveCopiesAreToldBySegments(t *testing.T) {
	for _, c := range []struct {
		all, left int
		want      int64
	}{{0, 0, 0}, {0, 3, 0}, {4, 4, 0}, {4, 5, 0}, {4, 3, 25}, {4, 0, 100}} {
		if got := copiedOf(100, c.all, c.left); got != c.want {
			t.Errorf("%d of %d are left: %d, want %d", c.left, c.all, got, c.want)
		}
	}
}
