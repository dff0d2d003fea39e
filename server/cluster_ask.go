package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/fabric/frame"
)

// askTimeout is how long a status waits for a node that does not answer.
const askTimeout = time.Second

// ReadClusterStatus reads the metadata and asks all living nodes for their facts. The secret is
// what peers prove themselves with; if it is nil, the one in etcd. If there is none either, as where nodes have it in a file, nobody is
// asked. Nothing is written.
func ReadClusterStatus(ctx context.Context, s *meta.Store, secret []byte) (ClusterStatus, error) {
	snapshot, err := s.Read(ctx)
	if err != nil {
		return ClusterStatus{}, err
	}
	if secret == nil && len(snapshot.Alive) > 0 {
		if secret, err = s.SecretOf(snapshot); err != nil {
			return ClusterStatus{}, err
		}
	}
	facts, silence := askAll(ctx, snapshot, secret)
	return StatusOf(snapshot, facts, silence), nil
}

// errNoSecret is why nobody was asked.
var errNoSecret = fmt.Errorf("%w: etcd has none, so the nodes have it in a file", frame.ErrUnauthorized)

// askAll asks living nodes at once.
func askAll(ctx context.Context, s *meta.Snapshot, secret []byte) (map[view.NodeID]NodeFacts, map[view.NodeID]error) {
	facts, silence := map[view.NodeID]NodeFacts{}, map[view.NodeID]error{}
	if len(s.Alive) == 0 {
		return facts, silence
	}
	if secret == nil {
		for _, n := range s.Living() {
			silence[n] = errNoSecret
		}
		return facts, silence
	}
	pool, err := peer.NewPool(peer.PoolOptions{
		Node: "status", Secret: secret, DialTimeout: askTimeout,
		Address: func(n view.NodeID) (string, error) { return s.Nodes[n].Address, nil },
	})
	if err != nil {
		for _, n := range s.Living() {
			silence[n] = err
		}
		return facts, silence
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, n := range s.Living() {
		all.Go(func() {
			var f NodeFacts
			_, err := pool.Call(ctx, n, MethodStatus, nil, nil, &f)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silence[n] = err
				return
			}
			facts[n] = f
		})
	}
	all.Wait()
	return facts, silence
}
