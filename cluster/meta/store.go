package meta

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Store is a cluster's metadata in etcd.
type Store struct {
	client *clientv3.Client
	kv     pairStore
	prefix string
	log    *slog.Logger
	last   atomic.Pointer[Snapshot] // that was read; what is large in it and has not changed is not decoded again

	mayNotCompact sync.Once // what is said about that
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
		return nil, c.explain(err)
	}
	s := &Store{client: client, kv: etcdPairs{client}, prefix: c.prefix(), log: c.logger()}
	ctx, cancel := context.WithTimeout(ctx, c.dialTimeout())
	defer cancel()
	if _, err := client.Get(ctx, s.prefix+keySettings); err != nil {
		_ = client.Close()
		return nil, c.explain(err)
	}
	return s, nil
}

// Close ends the connection. Leases that are not closed go on until they expire.
func (s *Store) Close() error { return s.client.Close() }

// quickReconnect keeps an etcd outage from being longer for us than for etcd:
// gRPC's own steps grow to two minutes, far beyond a lease. To find nobody at an address is cheap.
func quickReconnect() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 60 * time.Millisecond},
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
