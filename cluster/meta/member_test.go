package meta

import (
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

func TestTheNumberOfDatabasesIsTheHighestThatAnyNodeWasTold(t *testing.T) {
	s := open(t) // As of a version that knew of no such number.
	for _, step := range []struct{ told, want int }{{16, 16}, {32, 32}, {8, 32}} {
		wanted := DefaultSettings()
		wanted.Replicas, wanted.Databases = 7, step.told
		got, err := s.Configure(patience(t), wanted)
		ok(t, err)
		if got.Databases != step.want || got.Replicas != DefaultSettings().Replicas || read(t, s).Settings != got {
			t.Fatalf("a node that was told %d has %+v, want %d databases", step.told, got, step.want)
		}
	}
}

// Of two that change the same at once one plans again.
func TestReplicaVersionsThatRiseAtOnceAreAllDifferent(t *testing.T) {
	s := open(t)
	m := join(t, s, "n1")
	const n = 8
	var all sync.WaitGroup
	var seen sync.Map
	for range n {
		all.Go(func() {
			v, err := m.RaiseReplicaVersion(patience(t))
			if _, twice := seen.LoadOrStore(v, true); err != nil || twice {
				t.Errorf("version %d, twice %v: %v", v, twice, err)
			}
		})
	}
	all.Wait()
	if got := read(t, s).Logs[m.Node.Log].ReplicaVersion; got != 1+n {
		t.Fatalf("version %d after %d were raised", got, n)
	}
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
