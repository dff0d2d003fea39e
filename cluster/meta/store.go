package meta

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Store is a cluster's metadata in etcd.
type Store struct {
	client *clientv3.Client
	kv     pairStore
	prefix string
	log    *slog.Logger
	last   atomic.Pointer[Snapshot] // that was read; what is large in it and has not changed is not decoded again
}

// Open connects to etcd and asks it something, so that a wrong address, certificate or password is
// found here.
func Open(ctx context.Context, c Config) (*Store, error) {
	ec, err := c.client()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(ec)
	if err != nil {
		return nil, explain(c, err)
	}
	s := &Store{client: client, kv: etcdPairs{client}, prefix: "/ostro/" + c.cluster() + "/", log: c.logger()}
	ctx, cancel := context.WithTimeout(ctx, c.dialTimeout())
	defer cancel()
	if _, err := client.Get(ctx, s.prefix+keySettings); err != nil {
		_ = client.Close()
		return nil, explain(c, err)
	}
	return s, nil
}

// Close ends the connection. Leases that are not closed go on until they expire.
func (s *Store) Close() error { return s.client.Close() }

// explain makes one helpful sentence of why etcd did not answer.
func explain(c Config, err error) error {
	at := strings.Join(c.Endpoints, ", ")
	switch {
	case errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("etcd at %s refused the user %q: check the name and the password: %w", at, c.User, err)
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("the user %q may not use /ostro/%s/ of etcd at %s: grant it a role that may read and write there: %w", c.User, c.cluster(), at, err)
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.Unavailable:
		return fmt.Errorf("etcd at %s does not answer: check that it runs, that the address is right, and whether it wants TLS: %w", at, err)
	}
	return fmt.Errorf("ask etcd at %s: %w", at, err)
}

// quickReconnect keeps an etcd outage from being longer for us than for etcd:
// gRPC's own steps grow to two minutes, far beyond a lease.
func quickReconnect() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 400 * time.Millisecond},
		MinConnectTimeout: time.Second,
	})
}

// Read returns the metadata as of now: after every change that was acknowledged before the call.
func (s *Store) Read(ctx context.Context) (*Snapshot, error) {
	kvs, revision, err := s.kv.all(ctx, s.prefix)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's metadata from etcd: %w", err)
	}
	read, err := snapshotOf(s.pairs(kvs), revision, s.last.Load())
	if err == nil {
		s.last.Store(read)
	}
	return read, err
}

// pairStore is what reads and transactions need of etcd.
type pairStore interface {
	// all returns the pairs below a prefix as of now, but for books.
	all(ctx context.Context, prefix string) ([]*mvccpb.KeyValue, int64, error)
	// commit does all of the operations if all comparisons hold, or nothing.
	commit(ctx context.Context, ifs []clientv3.Cmp, ops []clientv3.Op) (done bool, revision int64, err error)
}

type etcdPairs struct{ client *clientv3.Client }

func (e etcdPairs) all(ctx context.Context, prefix string) ([]*mvccpb.KeyValue, int64, error) {
	resp, err := e.client.Get(ctx, prefix, clientv3.WithRange(prefix+books))
	if err != nil {
		return nil, 0, err
	}
	return resp.Kvs, resp.Header.Revision, nil
}

func (e etcdPairs) commit(ctx context.Context, ifs []clientv3.Cmp, ops []clientv3.Op) (bool, int64, error) {
	resp, err := e.client.Txn(ctx).If(ifs...).Then(ops...).Commit()
	if err != nil {
		return false, 0, err
	}
	return resp.Succeeded, resp.Header.Revision, nil
}

func (s *Store) pairs(kvs []*mvccpb.KeyValue) pairs {
	raw := make(pairs, len(kvs))
	for _, kv := range kvs {
		raw[strings.TrimPrefix(string(kv.Key), s.prefix)] = kv
	}
	return raw
}
