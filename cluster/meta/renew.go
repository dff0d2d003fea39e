package meta

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// leases is etcd's client with renewals of our own, for one lease. The client's try again
// without a pause for as long as no connection can be had, and keep a core busy by it. These wait.
//
// Renewals share a stream while it lives: to open one, where etcd wants passwords, the client has etcd hash the
// password again, which takes more of a processor than everything else that a cluster asks of it.
//
// Invariant: a stream whose last question was not answered is never used again. So an answer belongs to the
// question before it, and to no earlier one.
type leases struct {
	*clientv3.Client
	stream pb.Lease_LeaseKeepAliveClient // nil: none
	end    context.CancelFunc
}

// KeepAliveOnce asks once. Calls come one after the other.
func (l *leases) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	if l.stream == nil {
		if err := l.open(ctx); err != nil {
			return nil, err
		}
	}
	inTime := context.AfterFunc(ctx, l.end)
	resp, err := l.ask(id)
	if !inTime() && err == nil {
		err = ctx.Err()
	}
	if err != nil || resp.TTL <= 0 {
		l.hangUp()
	}
	return resp, err
}

// open begins a stream that lives on when ctx ends.
func (l *leases) open(ctx context.Context) error {
	long, end := context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, end)
	stream, err := pb.NewLeaseClient(l.ActiveConnection()).LeaseKeepAlive(long, grpc.WaitForReady(true))
	if !inTime() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
		return err
	}
	l.stream, l.end = stream, end
	return nil
}

func (l *leases) ask(id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	if err := l.stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		return nil, err
	}
	resp, err := l.stream.Recv()
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

func (l *leases) hangUp() {
	if l.stream != nil {
		l.end()
		l.stream, l.end = nil, nil
	}
}
