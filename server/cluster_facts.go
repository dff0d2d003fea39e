package server

import (
	"context"
	"errors"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/server/admin"
)

// answerStatus tells whoever asks what only this node knows.
func (h *host) answerStatus(context.Context, *peer.Call) (any, []byte, error) {
	return h.facts(), nil, nil
}

func (h *host) facts() NodeFacts {
	n := h.node
	f := NodeFacts{Version: BuildInfo().Version, Phase: n.Phase().String(), Uptime: time.Since(n.started), Clock: time.Now()}
	if err := n.Health(); err != nil {
		f.Unhealthy = err.Error()
	}
	if s, ok := n.Store(); ok {
		f.Keys, f.MemoryBytes, f.MemoryLimit, f.DiskBytes = s.Keys, s.MemoryBytes, s.MemoryLimit, s.DiskBytes
	}
	if r, ok := n.Redis(); ok {
		f.Clients, f.Commands = r.Clients, r.Commands
	}
	if h.backup != nil {
		b := h.backup.Metrics()
		f.Replicas, f.ReplicasOpen, f.ReplicaBytes, f.ReplicaBuffers = b.Replicas, b.OpenReplicas, int64(b.Bytes), b.BuffersFree
	}
	if l := h.life.Load(); l != nil && l.primary.Load() != nil {
		p := l.primary.Load().Metrics()
		f.UnreplicatedBytes, f.ThinSegments = p.InFlight, p.Thin
		f.CopiesLeft = copiesTake(p.Thin, h.settings.SegmentBytes)
	}
	return f
}

// leased tells whether the node may serve.
func (h *host) leased() bool {
	l := h.life.Load()
	return l != nil && l.gate.Alive()
}

// Cluster returns what a node of a cluster counts besides, once it is one.
func (n *Node) Cluster() (admin.Cluster, bool) {
	h := n.cluster
	if h == nil || !h.ready.Load() {
		return admin.Cluster{}, false
	}
	s, self := h.cache.Snapshot(), h.self
	c := admin.Cluster{
		Leased: h.leased(), Coordinator: s.Coordinator == self, View: uint64(s.Map.ViewID(self)),
		Share: s.Map.Ranges(self).Fraction(), Arriving: s.Unserved(self).Fraction(),
		Nodes: len(s.Nodes), Living: len(s.Alive), Dead: len(s.Dead()), Recoveries: len(s.Recoveries),
		Incoming: len(s.Incoming(self)), Outgoing: len(s.Outgoing(self)),
		Inherited: h.inherited.Load(), Backup: h.backup.Metrics(), Peers: h.peers.Metrics(),
	}
	c.Balancer = h.balanced.metrics()
	policy := BalancerPolicy(s.Balancer)
	c.Balancer.HourBytes, c.Balancer.HourMoves = int64(policy.HourBytes), int64(policy.HourMoves)
	spent, bytes := s.Spent(time.Now().Add(-time.Hour))
	c.Balancer.SpentMoves, c.Balancer.SpentBytes = int64(spent), bytes
	if l := h.life.Load(); l != nil {
		if m := l.gate.member.Load(); m != nil {
			c.Lease = m.Lease.Remaining()
		}
		if p := l.primary.Load(); p != nil {
			c.Primary = p.Metrics()
		}
		if d := l.driver.Load(); d != nil {
			c.Migrate = d.Metrics()
		}
	}
	return c, true
}

// closePeers ends calls in both directions.
func (h *host) closePeers() error {
	var errs []error
	if h.pool != nil {
		errs = append(errs, h.pool.Close())
	}
	if h.peers != nil {
		errs = append(errs, h.peers.Close())
	}
	if h.backup != nil {
		errs = append(errs, h.backup.Close())
	}
	return errors.Join(errs...)
}
