package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric/frame"
)

// ClusterStatus is all that an operator may want to know of a cluster at one moment.
type ClusterStatus struct {
	At          time.Time        `json:"at"`
	Revision    int64            `json:"revision"` // of the metadata
	Settings    meta.Settings    `json:"settings"`
	Coordinator view.NodeID      `json:"coordinator,omitempty"`
	Dealt       bool             `json:"dealt"` // whether the keys have owners
	Nodes       []NodeStatus     `json:"nodes"`
	Logs        []LogStatus      `json:"logs"` // those in use
	Recoveries  []RecoveryStatus `json:"recoveries,omitempty"`
	// Migrations are those under way and the last that have ended, the oldest first.
	Migrations []MigrationStatus `json:"migrations,omitempty"`
	Wishes     []WishStatus      `json:"wishes,omitempty"`
	// Problems are sentences; without any, the cluster is healthy.
	Problems []string `json:"problems,omitempty"`
}

// NodeStatus is a node, dead or alive.
type NodeStatus struct {
	ID           view.NodeID  `json:"id"`
	Alive        bool         `json:"alive"`
	Since        time.Time    `json:"since,omitzero"` // it joined
	Coordinator  bool         `json:"coordinator,omitempty"`
	Draining     bool         `json:"draining,omitempty"`
	Lost         bool         `json:"lost,omitempty"` // for good, as an operator said
	Zone         string       `json:"zone,omitempty"`
	Address      string       `json:"address"`
	RedisAddress string       `json:"redisAddress,omitempty"`
	AdminAddress string       `json:"adminAddress,omitempty"`
	Log          record.LogID `json:"log"`
	View         view.ViewID  `json:"view"`
	Ranges       view.Ranges  `json:"ranges"`
	Arriving     view.Ranges  `json:"arriving,omitempty"` // of Ranges, not served yet
	Pulling      view.Ranges  `json:"pulling,omitempty"`  // of Ranges, on their way here by migrations
	Share        float64      `json:"share"`              // of all keys
	// Facts are what the node says of itself; nil if it did not answer, then Silence is why.
	Facts   *NodeFacts `json:"facts,omitempty"`
	Silence string     `json:"silence,omitempty"`
	// Secretive is one that says nothing since the status was asked for without the nodes' secret.
	Secretive bool `json:"secretive,omitempty"`
}

// NodeFacts are what only the node itself knows: its answer to the call MethodStatus.
type NodeFacts struct {
	Version        string        `json:"version"`
	Phase          string        `json:"phase"`
	Unhealthy      string        `json:"unhealthy,omitempty"` // why
	Uptime         time.Duration `json:"uptime"`
	Clock          time.Time     `json:"clock"` // when it answered, by its clock
	Keys           int64         `json:"keys"`
	MemoryBytes    int64         `json:"memoryBytes"`
	MemoryLimit    int64         `json:"memoryLimit"`
	DiskBytes      int64         `json:"diskBytes"`
	Clients        int64         `json:"clients"`
	Commands       int64         `json:"commands"`
	Replicas       int           `json:"replicas"` // of other nodes' segments
	ReplicasOpen   int           `json:"replicasOpen"`
	ReplicaBytes   int64         `json:"replicaBytes"`
	ReplicaBuffers int           `json:"replicaBuffers"` // free ones
	// UnreplicatedBytes of its own log wait for copies.
	UnreplicatedBytes uint64 `json:"unreplicatedBytes"`
	// ThinSegments of its own log have fewer copies than they shall have; CopiesLeft estimates how long it takes to
	// make them, if there are nodes that take them.
	ThinSegments int           `json:"thinSegments,omitempty"`
	CopiesLeft   time.Duration `json:"copiesLeft,omitempty"`
}

// MethodStatus is the call that a node answers with NodeFacts.
const MethodStatus = "node.status"

// LogStatus is how well a living log is copied.
type LogStatus struct {
	ID             record.LogID  `json:"id"`
	Node           view.NodeID   `json:"node"`
	ReplicaVersion uint64        `json:"replicaVersion"`
	Copies         int           `json:"copies"` // every segment has so many backups
	Wanted         int           `json:"wanted"`
	Backups        []view.NodeID `json:"backups"`
	// Absent are those of Backups that are gone, or have lost what they had: until what was there has copies elsewhere,
	// some segments have fewer.
	Absent   []view.NodeID `json:"absent,omitempty"`
	Degraded bool          `json:"degraded,omitempty"`
}

// RecoveryStatus is a dead node whose keys others take, or cannot take yet.
type RecoveryStatus struct {
	Node  view.NodeID  `json:"node"`
	Log   record.LogID `json:"log"`
	Begun bool         `json:"begun"` // heirs are chosen; else Stage is what it waits for
	Stage string       `json:"stage"`
	Plan  *meta.Plan   `json:"plan,omitempty"`
	Parts []PartStatus `json:"parts,omitempty"`
	Done  int64        `json:"done"` // of Total bytes, over all heirs
	Total int64        `json:"total"`
	// Left estimates how long it goes on; 0 if nobody knows.
	Left time.Duration `json:"left,omitempty"`
}

// PartStatus is an heir's part of a recovery.
type PartStatus struct {
	Heir   view.NodeID   `json:"heir"`
	Ranges view.Ranges   `json:"ranges"`
	Share  float64       `json:"share"`
	Ready  bool          `json:"ready"` // served
	Stage  string        `json:"stage,omitempty"`
	Done   int64         `json:"done,omitempty"`
	Total  int64         `json:"total,omitempty"`
	Left   time.Duration `json:"left,omitempty"`
}

// WishStatus is what an operator asked for and what has not been done yet.
type WishStatus struct {
	Node    view.NodeID `json:"node"`
	Act     meta.Act    `json:"act"`
	Since   time.Time   `json:"since"`
	Waiting string      `json:"waiting,omitempty"`
	Refused string      `json:"refused,omitempty"`
}

// StatusOf makes a status of the metadata and of what nodes said of themselves.
func StatusOf(s *meta.Snapshot, facts map[view.NodeID]NodeFacts, silence map[view.NodeID]error) ClusterStatus {
	c := ClusterStatus{
		At: time.Now().UTC(), Revision: s.Revision, Settings: s.Settings,
		Coordinator: s.Coordinator, Dealt: !s.Map.IsZero(),
	}
	for id := range s.Nodes {
		c.Nodes = append(c.Nodes, nodeStatus(s, id, facts, silence))
	}
	slices.SortFunc(c.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.ID, b.ID) })
	for _, l := range s.Logs {
		if !l.Retired && s.Nodes[l.Node].Log == l.ID {
			c.Logs = append(c.Logs, logStatus(s, l))
		}
	}
	slices.SortFunc(c.Logs, func(a, b LogStatus) int { return cmp.Compare(a.Node, b.Node) })
	for _, r := range s.Recoveries {
		c.Recoveries = append(c.Recoveries, recoveryStatus(s, r))
	}
	for _, n := range s.Dead() {
		c.Recoveries = append(c.Recoveries, RecoveryStatus{
			Node: n, Log: s.Nodes[n].Log, Stage: cmp.Or(s.Progress[s.Nodes[n].Log][meta.TheCoordinator].Stage, "is dead"),
		})
	}
	slices.SortFunc(c.Recoveries, func(a, b RecoveryStatus) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Log, b.Log))
	})
	for n, w := range s.Wishes {
		c.Wishes = append(c.Wishes, WishStatus{n, w.Act, w.At, w.Waiting, w.Refused})
	}
	slices.SortFunc(c.Wishes, func(a, b WishStatus) int { return cmp.Compare(a.Node, b.Node) })
	c.Migrations = MigrationsOf(s)
	c.Problems = c.problems()
	return c
}

func nodeStatus(s *meta.Snapshot, id view.NodeID, facts map[view.NodeID]NodeFacts, silence map[view.NodeID]error) NodeStatus {
	n := s.Nodes[id]
	st := NodeStatus{
		ID: id, Alive: s.IsAlive(id), Since: s.Alive[id].Started, Coordinator: s.Coordinator == id,
		Draining: s.Draining(id), Lost: s.Lost(id), Zone: n.Zone,
		Address: n.Address, RedisAddress: cmp.Or(n.RedisAddress, n.RedisTLS), AdminAddress: n.AdminAddress,
		Log: n.Log, View: s.Map.ViewID(id), Ranges: s.Map.Ranges(id), Arriving: s.Unserved(id),
	}
	st.Share = st.Ranges.Fraction()
	for _, m := range s.Incoming(id) {
		st.Pulling = st.Pulling.Union(m.Ranges)
	}
	st.Arriving = st.Arriving.Subtract(st.Pulling)
	if f, ok := facts[id]; ok {
		st.Facts = &f
	} else if err := silence[id]; err != nil {
		st.Silence, st.Secretive = err.Error(), errors.Is(err, frame.ErrUnauthorized)
	}
	return st
}

func logStatus(s *meta.Snapshot, l meta.Log) LogStatus {
	wanted, absent := s.Settings.Replicas-1, s.Absent(l)
	return LogStatus{
		ID: l.ID, Node: l.Node, ReplicaVersion: l.ReplicaVersion, Copies: l.Copies, Wanted: wanted, Backups: l.Backups, Absent: absent,
		Degraded: (l.Copies < wanted || len(absent) > 0) && len(s.Map.Ranges(l.Node)) > 0,
	}
}

func recoveryStatus(s *meta.Snapshot, r meta.Recovery) RecoveryStatus {
	told := s.Progress[r.Log]
	st := RecoveryStatus{Node: r.Node, Log: r.Log, Begun: true, Plan: r.Plan, Stage: cmp.Or(told[meta.TheCoordinator].Stage, "fencing")}
	if r.Served() {
		st.Stage = stageCopying
	}
	for _, p := range r.Parts {
		by := told[string(p.Heir)]
		part := PartStatus{
			Heir: p.Heir, Ranges: p.Ranges, Share: p.Ranges.Fraction(), Ready: p.Served || p.Done,
			Stage: by.Stage, Done: by.Done, Total: by.Total, Left: by.Left(),
		}
		if p.Done {
			part.Stage, part.Done, part.Left = "served", part.Total, 0
		}
		st.Parts = append(st.Parts, part)
		st.Done, st.Total, st.Left = st.Done+part.Done, st.Total+part.Total, max(st.Left, part.Left)
	}
	return st
}

// Served tells whether all keys of the dead node are served again. Until the recovery has ended they lack copies.
func (r RecoveryStatus) Served() bool {
	return len(r.Parts) > 0 && !slices.ContainsFunc(r.Parts, func(p PartStatus) bool { return !p.Ready })
}

// problems are what an operator should look at.
func (c *ClusterStatus) problems() (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if c.Coordinator == "" {
		say("there is no coordinator: nobody reacts to failures; if that lasts, look whether nodes live and reach etcd")
	}
	if !c.Dealt {
		say("the keys have no owners yet: the first nodes are waited for")
	}
	for _, n := range c.Nodes {
		switch {
		case !n.Alive && n.Share > 0:
			say("%s is dead and owns %.1f%% of the keys", n.ID, 100*n.Share)
		case n.Alive && n.Facts != nil && n.Facts.Unhealthy != "":
			say("%s is unhealthy: %s", n.ID, n.Facts.Unhealthy)
		}
	}
	if slices.ContainsFunc(c.Nodes, func(n NodeStatus) bool { return n.Secretive }) {
		say("nodes tell nothing of themselves without the secret that they share: name its file with --secret-file, or the cluster's directory with --dir")
	}
	if first, last := c.clocks(); last.at.Sub(first.at) > clockSpread {
		say("the clock of %s is %s ahead of that of %s: keys expire by them, and a write that is tried again may run twice from two minutes on; let NTP set them",
			last.node, last.at.Sub(first.at).Round(time.Second), first.node)
	}
	for _, l := range c.Logs {
		if l.Degraded {
			say("%s", c.degraded(l))
		}
	}
	for _, r := range c.Recoveries {
		switch {
		case r.Served():
			say("the keys of %s are served again, and get their copies", r.Node)
		case r.Begun:
			say("the keys of %s are being recovered", r.Node)
		}
	}
	for _, w := range c.Wishes {
		if w.Refused != "" {
			say("%s %s was refused: %s", w.Act, w.Node, w.Refused)
		}
	}
	return list
}

// clockSpread is by how much clocks may differ before an operator is told. Nodes are asked at once, and have a second to answer.
const clockSpread = 10 * time.Second

// clock is what a node took for the time when it was asked.
type clock struct {
	node view.NodeID
	at   time.Time
}

// clocks finds the clocks that are furthest behind and ahead.
func (c *ClusterStatus) clocks() (first, last clock) {
	for _, n := range c.Nodes {
		if n.Facts == nil || n.Facts.Clock.IsZero() {
			continue // It did not answer, or is of a version that does not tell.
		}
		here := clock{n.ID, n.Facts.Clock}
		if first.node == "" || here.at.Before(first.at) {
			first = here
		}
		if last.node == "" || here.at.After(last.at) {
			last = here
		}
	}
	return first, last
}

// degraded says why a log has too few copies, and how far they are or what to do.
func (c *ClusterStatus) degraded(l LogStatus) string {
	others, facts := 0, (*NodeFacts)(nil)
	for _, n := range c.Nodes {
		switch {
		case n.ID == l.Node:
			facts = n.Facts
		case n.Alive && !n.Draining:
			others++
		}
	}
	text := fmt.Sprintf("copies of the log of %s that were at %v are being made anew", l.Node, l.Absent)
	if l.Copies < l.Wanted {
		text = fmt.Sprintf("the log of %s has %d copies elsewhere, not %d", l.Node, l.Copies, l.Wanted)
	}
	switch {
	case others < l.Wanted:
		text += fmt.Sprintf("; start nodes, for %d others are too few", others)
	case facts != nil && facts.ThinSegments > 0:
		text += fmt.Sprintf(": %d to go, about %s", facts.ThinSegments, facts.CopiesLeft.Round(100*time.Millisecond))
	}
	return text
}
