package meta

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	clientv3 "go.etcd.io/etcd/client/v3"
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

// delayed is etcd to who gives up on a transaction that gets there later.
type delayed struct {
	pairStore
	late func()
}

func (d *delayed) commit(_ context.Context, ifs []clientv3.Cmp, ops []clientv3.Op) (bool, int64, error) {
	etcd := d.pairStore
	d.late = func() { _, _, _ = etcd.commit(context.Background(), ifs, ops) }
	return false, 0, context.DeadlineExceeded
}

// Who was not answered tries again, or decides otherwise. What it did before must not be the last word.
func TestAChangeOfALogThatComesLateChangesNothing(t *testing.T) {
	s, members, _ := three(t)
	m := members[0]
	ok(t, m.AddBackup(patience(t), "n2"))
	ok(t, m.SetCopies(patience(t), 1))
	for _, c := range []struct {
		late, then func() error
	}{
		{func() error { return m.SetCopies(patience(t), 2) }, func() error { return m.SetCopies(patience(t), 1) }},
		{func() error { return m.ExcludeBackup(patience(t), "n2") }, func() error { return m.AddBackup(patience(t), "n2") }},
	} {
		slow := &delayed{pairStore: s.kv}
		s.kv = slow
		wantError(t, c.late(), context.DeadlineExceeded.Error())
		s.kv = slow.pairStore
		ok(t, c.then())
		slow.late()
		if l := read(t, s).Logs[m.Node.Log]; fmt.Sprint(l.Backups, l.Copies) != "[n2] 1" {
			t.Fatalf("etcd has %v and %d copies", l.Backups, l.Copies)
		}
	}
}

// What a node is about to drop must not be given to it again meanwhile.
func TestWhatIsStillLeavingIsSoUntilItIsSaidAnew(t *testing.T) {
	s, members, _ := three(t)
	m := members[0]
	ranges := m.mine(t)
	ok(t, m.change(patience(t), func(e *edit) error { return e.leave(m.Node.Log, ranges) }))
	slow := &delayed{pairStore: s.kv}
	s.kv = slow
	wantError(t, m.Retracted(patience(t), ranges, 1, 1), context.DeadlineExceeded.Error())
	s.kv = slow.pairStore
	left, err := m.StillLeaving(patience(t), ranges)
	ok(t, err)
	slow.late()
	if now := read(t, s).Leaving(m.Node.ID); !left.Equal(ranges) || !now.Equal(ranges) {
		t.Fatalf("%s was leaving, and %s is now", left, now)
	}
	ok(t, m.Retracted(patience(t), ranges, 1, 1))
	if left, err = m.StillLeaving(patience(t), ranges); err != nil || len(left) > 0 {
		t.Fatalf("%s is leaving still (%v)", left, err)
	}
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
