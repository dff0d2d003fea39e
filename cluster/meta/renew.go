package meta

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// leases is etcd's client with renewals of our own, for one lease. The client's try again
// without a pause for as long as no connection can be had, and keep a core busy by it. These wait.
//
// Renewals one after the other share a stream: to open one, where etcd wants passwords, takes a request more (login).
//
// Invariant: a stream belongs to one renewal at a time, and one whose last question was not answered is never used again.
// So an answer belongs to the question before it, and to no earlier one.
type leases struct {
	*clientv3.Client
	mu   sync.Mutex
	idle *renewals // nil: none
}

// renewals is a stream of them.
type renewals struct {
	pb.Lease_LeaseKeepAliveClient
	end context.CancelFunc
}

// KeepAliveOnce asks once. Calls at the same time go by streams of their own.
func (l *leases) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	stream, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	inTime := context.AfterFunc(ctx, stream.end)
	resp, err := stream.ask(id)
	if !inTime() && err == nil {
		err = ctx.Err()
	}
	if err != nil || resp.TTL <= 0 {
		stream.end()
		return resp, err
	}
	l.keep(stream)
	return resp, nil
}

// take gives the stream that was used last, if nobody else uses it, or a new one.
func (l *leases) take(ctx context.Context) (*renewals, error) {
	l.mu.Lock()
	stream := l.idle
	l.idle = nil
	l.mu.Unlock()
	if stream != nil {
		return stream, nil
	}
	return l.open(ctx)
}

// keep keeps a stream for the next renewal, in the place of another.
func (l *leases) keep(stream *renewals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil {
		l.idle.end()
	}
	l.idle = stream
}

// open begins a stream that lives on when ctx ends.
func (l *leases) open(ctx context.Context) (*renewals, error) {
	long, end := context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, end)
	stream, err := pb.NewLeaseClient(l.ActiveConnection()).LeaseKeepAlive(long, grpc.WaitForReady(true))
	if !inTime() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	return &renewals{stream, end}, nil
}

func (r *renewals) ask(id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	if err := r.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		return nil, err
	}
	resp, err := r.Recv()
	if err != nil {
		return nil, err
	}
	return &clientv3.LeaseKeepAliveResponse{ResponseHeader: resp.Header, ID: id, TTL: resp.TTL}, nil
}

// Revoke gives the lease back; nothing is renewed any more.
func (l *leases) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	l.hangUp()
	return l.Client.Revoke(ctx, id)
}

func (l *leases) hangUp() { l.keep(nil) }
