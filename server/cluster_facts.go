package server

import (
	"context"
	"errors"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
)

// answerStatus tells whoever asks what only this node knows.
func (h *host) answerStatus(context.Context, *peer.Call) (any, []byte, error) {
	return h.facts(), nil, nil
}

func (h *host) facts() NodeFacts {
	n := h.node
	f := NodeFacts{Version: BuildInfo().Version, Phase: n.Phase().String(), Uptime: time.Since(n.started)}
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
	if l := h.life.Load(); l != nil && l.primary != nil {
		f.UnreplicatedBytes = l.primary.Metrics().InFlight
	}
	return f
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
