package meta

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

func TestAPrimaryNotesWhoHasItsReplicas(t *testing.T) {
	s, members, _ := three(t)
	m := members[0]
	wantError(t, m.AddBackup(patience(t), "n1"), "cannot be its own backup")
	wantError(t, m.SetCopies(patience(t), -1), "cannot have -1 copies")
	for _, n := range []view.NodeID{"n2", "n3", "n2"} {
		ok(t, m.AddBackup(patience(t), n))
	}
	ok(t, m.SetCopies(patience(t), 2))
	_, err := m.RaiseReplicaVersion(patience(t))
	ok(t, err)
	l, err := m.Ledger(patience(t))
	ok(t, err)
	if got := fmt.Sprint(l.Backups, l.Copies, l.ReplicaVersion); got != "[n2 n3] 2 2" {
		t.Fatalf("etcd has %s", got)
	}
	ok(t, m.ExcludeBackup(patience(t), "n2"))
	ok(t, m.ExcludeBackup(patience(t), "n2"))
	if got := fmt.Sprint(read(t, s).Logs[m.Node.Log].Backups); got != "[n3]" {
		t.Fatalf("etcd has %s", got)
	}
	kill(t, m)
	wantError(t, m.AddBackup(patience(t), "n2"), ErrLeaseLost.Error())
	_, err = m.Ledger(patience(t))
	wantError(t, err, ErrLeaseLost.Error())
}

// Whom a recovery waits for, by who has answered and who was given up.
func TestALogIsRecoverableWhileFewerAreSilentThanHaveEachSegment(t *testing.T) {
	const d, b1, b2, b3 = "d", "b1", "b2", "b3"
	for _, c := range []struct {
		copies   int
		answered string
		lost     string
		known    string
		want     string
	}{
		{2, "b1 b2 b3", "", "d b1 b2 b3", "[] true"},
		{2, "b1 b3", "", "d b1 b2 b3", "[] true"},
		{2, "b1", "", "d b1 b2 b3", "[d b2 b3] false"},
		{2, "b1", "b2", "d b1 b2 b3", "[d b3] false"},
		{2, "b1", "b2 b3", "d b1 b2 b3", "[d] false"},
		{2, "b1", "d", "d b1 b2 b3", "[b2 b3] false"},
		{2, "b1", "d b2", "d b1 b2 b3", "[b3] false"},
		{2, "b1", "d b2 b3", "d b1 b2 b3", "[] true"},
		{1, "b1 b2", "", "d b1 b2 b3", "[d b3] false"},
		{0, "b1 b2 b3", "", "d b1 b2 b3", "[d] false"},
		{0, "b1 b2 b3", "d", "d b1 b2 b3", "[] true"},
		{2, "b1", "", "d b1 b2", "[d b2] false"},
		{2, "b1", "d", "d b1", "[] true"},
	} {
		s := &Snapshot{Marks: map[view.NodeID]Marks{}, Nodes: map[view.NodeID]Node{}}
		for _, n := range nodes(c.known) {
			s.Nodes[n] = Node{ID: n}
		}
		s.Logs = map[record.LogID]Log{1: {Node: d, Backups: []view.NodeID{b1, b2, b3}, Copies: c.copies}}
		for _, n := range nodes(c.lost) {
			s.Marks[n] = Marks{Lost: true}
		}
		wait, enough := s.Recoverable(1, func(n view.NodeID) bool { return slices.Contains(nodes(c.answered), n) })
		if got := fmt.Sprint(wait, enough); got != c.want {
			t.Errorf("%d copies, answered %q, lost %q: %s, want %s", c.copies, c.answered, c.lost, got, c.want)
		}
	}
}

func nodes(words string) (list []view.NodeID) {
	for _, w := range strings.Fields(words) {
		list = append(list, view.NodeID(w))
	}
	return list
}
