package txn_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
)

// spareGroup is a group of one blank replica.
func spareGroup(t *testing.T) (*scene, *group.Group) {
	t.Helper()
	s := prepare(t, small, 1)
	g := must(group.Open(s.ctx(), s.client, small, s.replicas[0]))(t)
	t.Cleanup(func() { check(t, g.Close()) })
	return s, g
}

// A record is executed slowly, from before the first copy is over: what is copied again
// must be what the execution has left, not what it has found.
func TestWhatIsExecutedWhileANewMemberCatchesUpIsCopiedToIt(t *testing.T) {
	s := newScene(t, small, plain, 1)
	fresh, spare := spareGroup(t)
	check(t, s.l.AppendWait(s.ctx(), entry(0, "late")))
	executed := make(chan error, 1)
	check(t, s.l.CopyTo(s.ctx(), spare, func(done, total uint64) {
		if done < total {
			return
		}
		check(t, s.net.Delay(loop(s.spies[0]), 10*time.Millisecond))
		go func() {
			_, err := s.l.ExecuteAndAdvance(s.ctx())
			executed <- err
		}()
		for marked := s.l.Marks(); !marked(); {
			runtime.Gosched()
		}
	}))
	check(t, <-executed)
	if got := string(fresh.mems[0].Bytes()[s.l.DataOffset():][:4]); got != "late" {
		t.Fatalf("the new member has %q", got)
	}
}

func TestTwoCopiesAtOnceAreRefused(t *testing.T) {
	s := newScene(t, small, plain, 1)
	_, first := spareGroup(t)
	_, second := spareGroup(t)
	check(t, s.l.CopyTo(s.ctx(), first, func(done, total uint64) {
		if err := s.l.CopyTo(s.ctx(), second, nil); done == total && !errors.Is(err, txn.ErrRefused) {
			t.Errorf("a second one begins: %v", err)
		}
		if done == total {
			check(t, s.l.AppendWait(s.ctx(), entry(0, "goes on")))
		}
	}))
}
