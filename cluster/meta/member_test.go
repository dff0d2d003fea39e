package meta

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ostrodb/ostro/cluster/view"
)

func TestWhoJoinsIsSeenByAllAndGoneWhenItLeaves(t *testing.T) {
	s := open(t)
	cache := follow(t, s)
	m := join(t, s, "n1")
	got := await(t, cache, "n1", func(s *Snapshot) bool { return s.alive("n1") })
	if diff := cmp.Diff(nodeNamed("n1"), got.Nodes["n1"]); diff != "" || got.Alive["n1"].Started.IsZero() {
		t.Fatal(diff)
	}
	if log := got.Logs[m.Node.Log]; log.Node != "n1" || log.ReplicaVersion != 1 {
		t.Fatalf("its log is %+v", log)
	}
	ok(t, m.Lease.Close(patience(t)))
	got = await(t, cache, "the end", func(s *Snapshot) bool { return !s.alive("n1") })
	if _, known := got.Nodes["n1"]; !known {
		t.Fatal("the cluster forgot the node with its lease")
	}
}

func TestANameALogAndAClusterAreCheckedWhenJoining(t *testing.T) {
	bare := openAt(t, shared.Addr())
	_, err := bare.Join(patience(t), nodeNamed("n1"))
	wantError(t, err, "configure it before the first node joins")
	_, err = bare.Configure(patience(t), Settings{})
	wantError(t, err, "these settings cannot work")

	s := open(t)
	join(t, s, "n1")
	_, err = s.Join(patience(t), nodeNamed("n1"))
	wantError(t, err, "n1 is in the cluster already, at 127.0.0.1:7000")
	thief := nodeNamed("n2")
	thief.Log = nodeNamed("n1").Log
	_, err = s.Join(patience(t), thief)
	wantError(t, err, "belongs to n1, not to n2")
	_, err = s.Join(patience(t), nodeNamed("a b"))
	wantError(t, err, "is no name of a node")
	if alive := read(t, s).Living(); len(alive) != 1 {
		t.Fatalf("alive are %v", alive)
	}
}

func TestSettingsAreThoseOfWhoCameFirst(t *testing.T) {
	s := open(t)
	other := DefaultSettings()
	other.Replicas = 7
	got, err := s.Configure(patience(t), other)
	ok(t, err)
	if got.Replicas != DefaultSettings().Replicas || read(t, s).Settings != got {
		t.Fatalf("got %+v", got)
	}
}

func TestTablesGetNumbersThatNoTableEverHad(t *testing.T) {
	s := open(t)
	m := join(t, s, "n1")
	const n = 8
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, err := m.CreateTable(patience(t), fmt.Sprint("t", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := read(t, s); len(got.Tables) != n || got.lastTable != n {
		t.Fatalf("%d tables, the last is %d", len(got.Tables), got.lastTable)
	}
	ok(t, m.DropTable(patience(t), n))
	wantError(t, m.DropTable(patience(t), n), "there is no table number 8")
	again, err := m.CreateTable(patience(t), "new")
	if err != nil || again.ID != n+1 {
		t.Fatalf("%+v, %v", again, err)
	}
	_, err = m.CreateTable(patience(t), "new")
	wantError(t, err, `there is a table "new" already, number 9`)
}

func (m *Member) mine(t *testing.T) view.Ranges { return read(t, m.store).Map.Ranges(m.Node.ID) }

func TestReplicaVersionsRise(t *testing.T) {
	s := open(t)
	m := join(t, s, "n1")
	for want := uint64(2); want < 5; want++ {
		if got, err := m.RaiseReplicaVersion(patience(t)); err != nil || got != want || read(t, s).Logs[m.Node.Log].ReplicaVersion != want {
			t.Fatalf("%d, %v, want %d", got, err, want)
		}
	}
}
