package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
)

// put is a transaction of one entry.
func put(s *scene, off uint64, data string) {
	s.t.Helper()
	check(s.t, s.l.Update(s.ctx(), []int{0}, func(tx *txn.Tx) error {
		tx.Write(off, []byte(data))
		return nil
	}))
}

// A replica was away while the other one went on. It is in a group again, and its
// gate is as the old client has left it.
func TestAReplicaServesNothingOldBeforeItsNewGroupIsRecovered(t *testing.T) {
	s := newScene(t, small, plain, 2)
	r := txn.NewReader(s.replicas[0], s.mems[0])
	put(s, 0, "old")
	s.close()
	check(t, s.again(plain, 1))
	put(s, 0, "new")
	s.close()
	g := must(group.Open(s.ctx(), s.client, s.spec, s.members()...))(t)
	t.Cleanup(func() { check(t, g.Close()) })
	over, cancel := context.WithCancel(s.ctx())
	cancel()
	err := r.View(over, []int{0}, func(data []byte) error {
		t.Errorf("it reads %q", data[:3])
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("it does not wait: %v", err)
	}
	l := must(txn.Initialize(s.ctx(), g, plain))(t)
	t.Cleanup(func() { check(t, l.Close()) })
	check(t, r.View(s.ctx(), []int{0}, func(data []byte) error {
		if got := string(data[:3]); got != "new" {
			t.Errorf("then it reads %q", got)
		}
		return nil
	}))
}

func TestAReaderReadsAgainWhenItsGroupIsInitializedTwice(t *testing.T) {
	s := newScene(t, small, plain, 1)
	r := txn.NewReader(s.replicas[0], s.mems[0])
	calls := 0
	check(t, r.View(s.ctx(), []int{0}, func([]byte) error {
		if calls++; calls == 1 {
			check(t, s.l.Close())
			s.l = must(txn.Initialize(s.ctx(), s.g, plain))(t)
		}
		return nil
	}))
	if calls != 2 {
		t.Fatalf("it was called %d times", calls)
	}
	put(s, 0, "no lock is left")
	check(t, s.l.Close())
}
