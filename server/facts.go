package server

import (
	"strconv"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/admin"
	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/server/session"
)

var _ admin.Node = (*Node)(nil)

// Phase tells what the node is doing. A cluster's node serves only while it has a lease.
func (n *Node) Phase() admin.Phase {
	p := *n.phase.Load()
	if p.Ready && n.cluster != nil && !n.cluster.leased() {
		return admin.Phase{Name: "without a lease; etcd may be out of reach"}
	}
	return p
}

// Health tells why the node no longer keeps its promises: after a failed sync
// nobody knows what is on the disk, and only a restart finds out.
func (n *Node) Health() error {
	if err := n.Failure(); err != nil {
		return err
	}
	if s := n.store.Load(); s != nil {
		return s.Health()
	}
	return nil
}

// Store returns the engine's numbers, once it runs.
func (n *Node) Store() (store.Metrics, bool) {
	if s := n.store.Load(); s != nil {
		return s.Metrics(), true
	}
	return store.Metrics{}, false
}

// Redis returns the front door's numbers, once it runs.
func (n *Node) Redis() (redis.Metrics, bool) {
	if r := n.redis.Load(); r != nil {
		return r.Metrics(), true
	}
	return redis.Metrics{}, false
}

// Native returns the native door's numbers, once it is open.
func (n *Node) Native() (session.Metrics, bool) {
	if s := n.native.Load(); s != nil {
		return s.Metrics(), true
	}
	return session.Metrics{}, false
}

// Calls tells what became of calls of functions, by both front doors.
func (n *Node) Calls() (m call.Metrics, has bool) {
	if r := n.redis.Load(); r != nil {
		m, has = r.Calls(), true
	}
	if s := n.native.Load(); s != nil {
		c := s.Calls()
		m.Inline, m.Scheduled, m.Abandoned = m.Inline+c.Inline, m.Scheduled+c.Scheduled, m.Abandoned+c.Abandoned
		m.Conflicts, m.Repeated, has = m.Conflicts+c.Conflicts, m.Repeated+c.Repeated, true
	}
	return m, has
}

// Facts are the lines of the status page.
func (n *Node) Facts() []admin.Fact {
	facts := []admin.Fact{
		{Name: "up", Value: time.Since(n.started).Round(time.Second).String()},
		{Name: "data directory", Value: n.cfg.DirText()},
		{Name: "durability", Value: n.cfg.Durability.String()},
	}
	add := func(name, value string) { facts = append(facts, admin.Fact{Name: name, Value: value}) }
	if c, ok := n.Cluster(); ok {
		add("node", string(n.cluster.self)+" at "+n.cfg.announced(n.cfg.clusterPort()))
		add("cluster", number(int64(c.Living))+" of "+number(int64(c.Nodes))+" nodes live; this one owns "+strconv.FormatFloat(100*c.Share, 'f', 1, 64)+"% of the keys")
		add("copies", number(int64(c.Primary.Copies))+" of "+number(int64(c.Primary.Wanted))+" elsewhere; "+number(int64(c.Backup.Replicas))+" replicas of others here")
	}
	if n.cluster != nil && n.cluster.ready.Load() {
		for _, m := range n.cluster.moves() {
			add(m.Name, m.Value)
		}
	}
	if r, ok := n.Redis(); ok {
		add("address", n.Addr())
		add("clients", number(r.Clients))
		add("commands", number(r.Commands))
	}
	if s, ok := n.Store(); ok {
		add("keys", number(s.Keys))
		add("memory", Size(s.MemoryBytes).Short()+" of "+Size(s.MemoryLimit).Short()+", then "+n.cfg.MemoryPolicy.String())
		add("disk", Size(s.DiskBytes).Short())
		add("segments", number(s.SegmentsInMemory)+" in memory, "+number(s.SegmentsOnDisk)+" on disk, "+number(s.SegmentsOnBlob)+" in the shared tier")
		add("last checkpoint", n.lastCheckpoint())
	}
	return facts
}

// DirText names the data directory for people.
func (c *Config) DirText() string {
	if c.Dir == "" {
		return "none, memory only"
	}
	return c.Dir
}

func (n *Node) lastCheckpoint() string {
	s := n.store.Load()
	if s == nil || s.LastCheckpoint().IsZero() {
		return "none yet"
	}
	return time.Since(s.LastCheckpoint()).Round(time.Second).String() + " ago"
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
