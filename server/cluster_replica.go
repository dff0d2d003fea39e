package server

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// openBackup makes this node's disk and memory available to other nodes' logs.
func (h *host) openBackup() (err error) {
	h.backup, err = replica.OpenBackup(replica.BackupOptions{
		Dir: filepath.Join(h.cfg.Dir, backupDir), Device: h.device, Node: h.self,
		SegmentBytes: uint32(h.settings.SegmentBytes), HoldUp: h.cfg.HoldUp, Place: store.PlaceOfEntry,
		Log: h.log.With("part", "backup"),
	})
	if err != nil {
		return err
	}
	h.backup.Handle(h.peers)
	return nil
}

// forgetLogs drops replicas of logs that were taken over and whose heirs all have what was theirs.
func (h *host) forgetLogs(s *meta.Snapshot) {
	for _, l := range h.backup.Logs() {
		_, needed := s.Recoveries[l.Log]
		if known, ok := s.Logs[l.Log]; !ok || !known.Retired || needed || l.Replicas == 0 {
			continue
		}
		if err := h.backup.Forget(l.Log); err != nil {
			h.log.Warn("replicas of a retired log were not dropped", "log", fmt.Sprintf("%016x", uint64(l.Log)), "why", err)
		}
	}
}

// copyBytesPerSecond is how fast copies are made anew that were lost with a node.
const copyBytesPerSecond = 64 << 20

// copiesTake is about how long it takes to make so many.
func copiesTake(segments, segmentBytes int) time.Duration {
	return time.Duration(float64(segments) * float64(segmentBytes) / copyBytesPerSecond * float64(time.Second))
}

// newPrimary makes what keeps copies of this node's log at others.
func (l *life) newPrimary() (*replica.Primary, error) {
	log, err := l.copiesSoFar()
	if err != nil {
		return nil, err
	}
	p := replica.NewPrimary(replica.PrimaryOptions{
		Self: l.id.Node, Members: l.members, Ledger: &l.ledger, Peers: l.pool,
		Device: l.device, Mode: replica.Mode(l.cfg.Replication),
		Copies: l.settings.Replicas - 1, Version: log.ReplicaVersion, HadCopies: log.Copies, Backups: log.Backups,
		Placement: replica.Placement{ScatterWidth: l.cfg.ScatterWidth}, CopyBytesPerSecond: copyBytesPerSecond,
		SharedMemory: l.cfg.MigrateShared,
		Log:          l.log.With("part", "primary"),
	})
	l.primary.Store(p)
	return p, nil
}

// copiesSoFar is what the metadata says of the log's copies. Of one that has no segments yet each
// has as many as there shall be.
func (l *life) copiesSoFar() (meta.Log, error) {
	m, err := l.ledger.current()
	if err != nil {
		return meta.Log{}, err
	}
	has, err := l.id.hasLog()
	if err == nil && !has {
		err = m.SetCopies(l.ctx, l.settings.Replicas-1)
	}
	if err != nil {
		return meta.Log{}, err
	}
	return m.Ledger(l.ctx)
}

// members are the nodes that could hold copies.
func (h *host) members() replica.Membership {
	changed := h.cache.Changed()
	s := h.cache.Snapshot()
	return membership(s, s.Logs[s.Nodes[h.self].Log], changed)
}

// membership is who may hold copies of a log: who lives and shall stay, or if that is nobody, who lives. Nodes that were given up
// for good are none at all.
func membership(s *meta.Snapshot, log meta.Log, changed <-chan struct{}) replica.Membership {
	m := replica.Membership{Changed: changed, Ghosts: map[view.NodeID]view.NodeID{}}
	for _, b := range log.Backups {
		if meta.IsGhost(b) {
			m.Ghosts[b] = meta.GhostOf(b)
		}
	}
	var leaving []replica.Member
	others := false
	for id, n := range s.Nodes {
		if !s.Lost(id) {
			m.Known++
		}
		one := replica.Member{ID: view.NodeID(id), Zone: n.Zone}
		switch {
		case !s.IsAlive(id):
		case !s.Draining(id):
			m.Living = append(m.Living, one)
			others = others || id != log.Node
		case id != log.Node:
			leaving = append(leaving, one)
		}
	}
	if !others {
		m.Living = append(m.Living, leaving...)
	}
	return m
}
