package meta

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Lease is a node's right to serve, by its own clock.
//
//	asked           answered    deadline     etcd lets it expire      others act on it
//	  |----------------|---- ... --|---margin---|---------grace----------|---->
//	  |<------------ time to live ------------->|
//
// Invariant: etcd counts from when the question reached it, the node from before it asked. So the
// deadline lies before the moment at which anybody acts on the node's death, by margin and
// Grace at least, which are for clocks that run at different speeds.
//
// A lease that is past its deadline may come back, if etcd was away and never let it
// expire: nobody has acted then. One that etcd has dropped, or that was closed, is lost for good.
type Lease struct {
	id       clientv3.LeaseID
	etcd     leaser
	now      func() time.Duration
	ttl      time.Duration
	deadline atomic.Int64 // by now; lost if it will never rise again
	lost     chan struct{}
	stop     context.CancelFunc
	stopped  chan struct{}
}

const lost = math.MinInt64

// leaser is what a Lease needs of etcd's client.
type leaser interface {
	Grant(ctx context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error)
	KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error)
	Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error)
	Endpoints() []string
}

// margin is the part of a lease that the node does not use. It is for clocks that merely are not the same: those
// that somebody turns are Grace's.
func margin(ttl time.Duration) time.Duration { return ttl / 64 }

// interval is how often a lease is renewed. What is left of a lease when etcd
// goes away is its time to live less this and the margin.
func interval(ttl time.Duration) time.Duration { return ttl / 32 }

// hangs is how long a renewal goes without an answer before another member of etcd is asked beside it.
func hangs(ttl time.Duration) time.Duration { return ttl / 8 }

func grant(ctx context.Context, etcd leaser, ttl time.Duration, now func() time.Duration) (*Lease, error) {
	seconds := int64(math.Ceil(ttl.Seconds()))
	asked := now()
	resp, err := etcd.Grant(ctx, seconds)
	if err != nil {
		return nil, fmt.Errorf("ask etcd for a lease: %w", err)
	}
	background, stop := context.WithCancel(context.Background())
	l := &Lease{
		id: resp.ID, etcd: etcd, now: now, ttl: time.Duration(resp.TTL) * time.Second,
		lost: make(chan struct{}), stop: stop, stopped: make(chan struct{}),
	}
	l.deadline.Store(int64(asked + l.ttl - margin(l.ttl)))
	go l.keep(background)
	return l, nil
}

// Alive tells whether the node may still serve. It reads the clock each time: a process
// that was stopped learns of it by the first call. To be of use it must be called after
// a request has arrived, for then the answer's moment lies within the request's time.
func (l *Lease) Alive() bool { return int64(l.now()) < l.deadline.Load() }

// Remaining is how long Alive will go on to be true without word from etcd;
// not positive if it is not.
func (l *Lease) Remaining() time.Duration {
	deadline := l.deadline.Load()
	if deadline == lost {
		return 0
	}
	return time.Duration(deadline) - l.now()
}

// TTL is the time to live that etcd granted, which may be longer than was asked for.
func (l *Lease) TTL() time.Duration { return l.ttl }

// Grace is for how long a node must be seen without its lease before others take what it owned. It is for clocks that are
// being set: the programs that do it slow them down, or speed them up, by a twelfth at most (chrony; the others by far less).
func (l *Lease) Grace() time.Duration { return l.ttl / 12 }

// Lost is closed when the lease will never be alive again: the node must join anew.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Close ends the lease: first here, then in etcd, if etcd answers in time.
func (l *Lease) Close(ctx context.Context) error {
	l.lose()
	l.stop()
	<-l.stopped
	if _, err := l.etcd.Revoke(ctx, l.id); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("give the lease back to etcd, where it now expires by itself: %w", err)
	}
	return nil
}

func (l *Lease) lose() {
	if l.deadline.Swap(lost) != lost {
		close(l.lost)
	}
}

// prolong moves the deadline on, unless the lease is lost. Answers may overtake each other.
func (l *Lease) prolong(to time.Duration) {
	for {
		old := l.deadline.Load()
		if old == lost || old >= int64(to) || l.deadline.CompareAndSwap(old, int64(to)) {
			return
		}
	}
}

// keep renews until the lease is lost or closed. A renewal that hangs keeps no other member of etcd from being asked, for
// the machine at its other end may be gone. Nor is it given up: etcd may stand still, and answers it first when it goes on.
func (l *Lease) keep(ctx context.Context) {
	var asking sync.WaitGroup
	defer close(l.stopped)
	defer asking.Wait()
	round := newRound(ctx)
	defer func() { round.end() }()
	tick := time.NewTicker(interval(l.ttl))
	defer tick.Stop()
	members := len(l.etcd.Endpoints())
	answers, waiting, last := make(chan bool, members), 0, time.Duration(0)
	for l.deadline.Load() != lost {
		select {
		case <-ctx.Done():
			return
		case renewed := <-answers:
			waiting--
			if renewed { // Who hangs still has nothing better to say.
				round.end()
				round = newRound(ctx)
			}
		case <-tick.C:
			if waiting > 0 && (waiting == members || l.now()-last < hangs(l.ttl)) {
				continue
			}
			waiting++
			last = l.now()
			now := round.ctx
			asking.Go(func() { answers <- l.renew(now) })
		}
	}
}

// round is renewals of which the first answer is enough.
type round struct {
	ctx context.Context
	end context.CancelFunc
}

func newRound(ctx context.Context) (r round) {
	r.ctx, r.end = context.WithCancel(ctx)
	return r
}

// renew asks once, and tells whether etcd has renewed the lease.
func (l *Lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, l.ttl)
	defer cancel()
	asked := l.now()
	resp, err := l.etcd.KeepAliveOnce(ctx, l.id)
	switch {
	case err != nil:
		return false
	case resp.TTL <= 0: // It has expired.
		l.lose()
		return false
	}
	ttl := time.Duration(resp.TTL) * time.Second
	l.prolong(asked + ttl - margin(ttl))
	return true
}
