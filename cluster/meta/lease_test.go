package meta

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// script is etcd's side of a lease, in the bubble's time: how long an answer takes, whether there is one.
type script struct {
	ttl, delay    time.Duration
	away, dropped atomic.Bool
	asked         atomic.Int32
	givenUp       atomic.Int32
	renewed       atomic.Int32
	hanging       int32 // members that are gone: so many of the first questions are never answered
}

func (s *script) answer(ctx context.Context) error {
	for s.away.Load() {
		select {
		case <-ctx.Done():
			s.givenUp.Add(1)
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	time.Sleep(s.delay)
	return nil
}

func (s *script) Grant(ctx context.Context, _ int64) (*clientv3.LeaseGrantResponse, error) {
	return &clientv3.LeaseGrantResponse{ID: 1, TTL: int64(s.ttl / time.Second)}, s.answer(ctx)
}

func (s *script) KeepAliveOnce(ctx context.Context, _ clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	if s.dropped.Load() {
		return &clientv3.LeaseKeepAliveResponse{ID: 1}, nil
	}
	if s.asked.Add(1) <= s.hanging {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	err := s.answer(ctx)
	if err == nil {
		s.renewed.Add(1)
	}
	return &clientv3.LeaseKeepAliveResponse{ID: 1, TTL: int64(s.ttl / time.Second)}, err
}

func (s *script) Revoke(context.Context, clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return nil, rpctypes.ErrLeaseNotFound
}

func (s *script) Endpoints() []string { return make([]string, 1+s.hanging) }

func inBubble(t *testing.T, s *script, do func(*testing.T, *Lease)) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l, err := grant(t.Context(), s, s.ttl, func() time.Duration { return time.Since(start) })
		ok(t, err)
		do(t, l)
		ok(t, l.Close(t.Context()))
		if l.Alive() {
			t.Fatal("alive after Close")
		}
	})
}

func TestALeaseThatIsRenewedLivesOn(t *testing.T) {
	inBubble(t, &script{ttl: 8 * time.Second, delay: 10 * time.Millisecond}, func(t *testing.T, l *Lease) {
		for range 1000 {
			time.Sleep(100 * time.Millisecond)
			if !l.Alive() || l.Remaining() < 5*time.Second {
				t.Fatalf("%v remain", l.Remaining())
			}
		}
	})
}

func TestALeaseCountsFromBeforeItWasAskedFor(t *testing.T) {
	inBubble(t, &script{ttl: 8 * time.Second, delay: 3 * time.Second}, func(t *testing.T, l *Lease) {
		// 8 s, less a margin of an eighth of a second, less 3 s on the way.
		if l.Remaining() != 4875*time.Millisecond {
			t.Fatalf("%v remain", l.Remaining())
		}
	})
}

// A lease is renewed every quarter of a second, and an eighth is the margin: whenever etcd goes away, it may be away for
// 7.625 s at least.
func TestALeaseOutlivesAnOutageThatIsNearlyAsLongAsItself(t *testing.T) {
	for after := range 16 { // at any moment between two renewals
		s := &script{ttl: 8 * time.Second}
		inBubble(t, s, func(t *testing.T, l *Lease) {
			time.Sleep(1100*time.Millisecond + time.Duration(after)*interval(s.ttl)/16)
			synctest.Wait()
			s.away.Store(true)
			time.Sleep(7624 * time.Millisecond)
			if !l.Alive() {
				t.Fatalf("dead within its time: %v remain", l.Remaining())
			}
			s.away.Store(false)
			time.Sleep(interval(s.ttl))
			synctest.Wait()
			if l.Remaining() < 7*time.Second {
				t.Fatalf("%v remain although etcd is back", l.Remaining())
			}
		})
	}
}

func TestALeaseOutlivesNoOutageThatIsLongerThanItself(t *testing.T) {
	s := &script{ttl: 8 * time.Second}
	inBubble(t, s, func(t *testing.T, l *Lease) {
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		s.away.Store(true) // just after a renewal
		time.Sleep(7873 * time.Millisecond)
		if !l.Alive() {
			t.Fatal("dead within its time")
		}
		time.Sleep(2 * time.Millisecond)
		if l.Alive() {
			t.Fatal("alive past its deadline, which is a margin before etcd's")
		}
		// etcd never let it expire: it may come back.
		s.away.Store(false)
		time.Sleep(4 * time.Second)
		if !l.Alive() {
			t.Fatal("dead although etcd renewed it")
		}
	})
}

// Two of etcd's three machines are gone without a word.
func TestARenewalThatHangsKeepsNoOtherFromBeingAnswered(t *testing.T) {
	s := &script{ttl: 8 * time.Second, hanging: 2}
	inBubble(t, s, func(t *testing.T, l *Lease) {
		for range 100 {
			time.Sleep(250 * time.Millisecond)
			if l.Remaining() < 5*time.Second {
				t.Fatalf("%v remain", l.Remaining())
			}
		}
	})
}

// An etcd that stood still answers what it was asked before, as soon as it goes on.
func TestARenewalThatHangsIsNotGivenUp(t *testing.T) {
	s := &script{ttl: 8 * time.Second}
	inBubble(t, s, func(t *testing.T, l *Lease) {
		time.Sleep(time.Second)
		s.away.Store(true)
		time.Sleep(7600 * time.Millisecond)
		if given := s.givenUp.Load(); given > 0 {
			t.Fatalf("%d questions were given up", given)
		}
		s.away.Store(false)
	})
}

func TestAnAnswerThatWasOvertakenChangesNothing(t *testing.T) {
	l := &Lease{now: func() time.Duration { return 0 }, lost: make(chan struct{})}
	l.prolong(5 * time.Second)
	l.prolong(3 * time.Second)
	if l.Remaining() != 5*time.Second {
		t.Fatalf("%v remain", l.Remaining())
	}
}

func TestALeaseThatEtcdDroppedIsLostForGood(t *testing.T) {
	s := &script{ttl: 8 * time.Second}
	inBubble(t, s, func(t *testing.T, l *Lease) {
		s.dropped.Store(true)
		<-l.Lost()
		s.dropped.Store(false)
		time.Sleep(time.Minute)
		if l.Alive() || s.renewed.Load() != 0 || l.Remaining() > 0 {
			t.Fatalf("alive %v, renewed %d times", l.Alive(), s.renewed.Load())
		}
	})
}

func TestALateAnswerDoesNotRaiseAClosedLease(t *testing.T) {
	inBubble(t, &script{ttl: 8 * time.Second, delay: time.Second}, func(t *testing.T, l *Lease) {
		time.Sleep(time.Second) // A renewal is on its way.
		synctest.Wait()
		l.lose()
		time.Sleep(10 * time.Second)
		if l.Alive() {
			t.Fatal("alive again")
		}
	})
}

func TestTheNodeKnowsItsLeaseDeadBeforeAnybodyElseDoes(t *testing.T) {
	direct := open(t, short)
	p := proxyTo(t, shared.Addr())
	m := join(t, openAt(t, p.addr()), "n1")
	cache := follow(t, direct)
	p.cut()
	await(t, cache, "the end of the lease", func(s *Snapshot) bool { return !s.alive("n1") })
	if m.Lease.Alive() {
		t.Fatal("others may act on the node's death and it still serves")
	}
	p.mend()
	select {
	case <-m.Lease.Lost():
	case <-patience(t).Done():
		t.Fatal("the lease is gone and the node does not learn it")
	}
	if _, err := m.RaiseReplicaVersion(patience(t)); !errors.Is(err, ErrLeaseLost) {
		t.Fatalf("a write without a lease: %v", err)
	}
}

func TestAStoppedProcessKnowsItsLeaseDeadBeforeItServes(t *testing.T) {
	s := open(t, short)
	cache := follow(t, s)
	c := startChild(t, "n1", "member")
	for alive := ""; alive != "true\n"; alive = c.line() {
		c.ask()
	}
	await(t, cache, "the member", func(s *Snapshot) bool { return s.alive("n1") })
	c.signal(syscall.SIGSTOP)
	await(t, cache, "the end of the lease", func(s *Snapshot) bool { return !s.alive("n1") })
	c.ask()
	c.signal(syscall.SIGCONT)
	if after := c.line(); after != "false\n" {
		t.Fatalf("the first answer after the stop is %q", after)
	}
}
