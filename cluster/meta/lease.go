package meta

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Lease is a node's right to serve, by its own clock.
//
//	asked           answered       deadline      etcd lets it expire
//	  |----------------|---- ... ----|---margin---|----->
//	  |<------------- time to live -------------->|
//
// Invariant: etcd counts from when the question reached it, the node from before it asked. So the
// deadline lies before the moment at which anybody may act on the node's death, by the
// margin at least, which is for clocks that run at different speeds.
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
}

// margin is the part of a lease that the node does not use.
func margin(ttl time.Duration) time.Duration { return ttl / 8 }

// interval is how often a lease is renewed. What is left of a lease when etcd
// goes away is its time to live less this and the margin.
func interval(ttl time.Duration) time.Duration { return ttl / 8 }

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

// prolong moves the deadline, unless the lease is lost.
func (l *Lease) prolong(to time.Duration) {
	for {
		old := l.deadline.Load()
		if old == lost || l.deadline.CompareAndSwap(old, int64(to)) {
			return
		}
	}
}

// keep renews until the lease is lost or closed.
func (l *Lease) keep(ctx context.Context) {
	defer close(l.stopped)
	tick := time.NewTicker(interval(l.ttl))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if l.renew(ctx); l.deadline.Load() == lost {
			return
		}
	}
}

// renew asks once. An attempt that hangs is given up after a while, for the next may find another way.
func (l *Lease) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	asked := l.now()
	resp, err := l.etcd.KeepAliveOnce(ctx, l.id)
	switch {
	case err == nil && resp.TTL <= 0: // It has expired.
		l.lose()
	case err == nil:
		ttl := time.Duration(resp.TTL) * time.Second
		l.prolong(asked + ttl - margin(ttl))
	}
}
