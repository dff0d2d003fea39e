package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/wire"
)

// gate tells the front doors what this node serves, and whether it may.
//
// A node serves what the newest snapshot that it knows gives to it, less what has
// not arrived; of what a migration brings it serves all, once it is opened. That snapshot may be old, but not wrong about this node: nobody takes
// anything from a node whose lease is alive. So the snapshot must not be older than the lease, and
// once the lease has ended nothing is answered.
type gate struct {
	self   view.NodeID
	member atomic.Pointer[meta.Member] // nil: not in the cluster
	native atomic.Pointer[session.Routing]
	redis  atomic.Pointer[redis.Routing]
	own    atomic.Pointer[view.Ranges] // see serves
	whole  atomic.Pointer[view.Ranges] // see expires

	mu       sync.Mutex
	seen     *meta.Snapshot
	opened   view.Ranges            // of what a migration brings: served, for the store knows what is missing
	replayed legacy                 // of others' logs: served, though they are needed still
	shown    view.Ranges            // as arriving
	expected view.Ranges            // of another's: operations wait rather than be sent there
	awaited  view.Ranges            // as it was shown
	withheld map[uint64]view.Ranges // own, by migration: operations wait, for others are about to have them
	samples  store.Samples
	changed  chan struct{}
	watchers map[*watcher]bool
}

type watcher struct{ f func() }

func newGate(self view.NodeID, s *meta.Snapshot) *gate {
	g := &gate{self: self, changed: make(chan struct{}), watchers: map[*watcher]bool{}}
	g.show(s)
	return g
}

// Alive tells whether this node's lease is surely held.
func (g *gate) Alive() bool {
	m := g.member.Load()
	return m != nil && m.Lease.Alive()
}

// show makes a snapshot what is served, if it is about anything else than before.
func (g *gate) show(s *meta.Snapshot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen != nil && s.Revision < g.seen.Revision {
		return
	}
	g.opened = g.opened.Intersect(incoming(s, g.self)) // Others that come later are not open by that.
	maps.DeleteFunc(g.withheld, func(id uint64, _ view.Ranges) bool { return s.Migrations[id].Stage.Ended() })
	g.replayed = slices.DeleteFunc(slices.Clone(g.replayed), func(share meta.Share) bool {
		_, going := s.Replay(share)
		return !going
	})
	g.publish(s)
}

// change changes what is served beside what a snapshot says.
func (g *gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	g.publish(g.seen)
}

// open serves ranges that a migration brings to this node, as a snapshot says. They are not expected any more.
func (g *gate) open(s *meta.Snapshot, ranges view.Ranges) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.Revision < g.seen.Revision {
		s = g.seen
	}
	g.opened = g.opened.Union(ranges).Intersect(incoming(s, g.self))
	g.expected = g.expected.Subtract(ranges)
	g.publish(s)
}

// shut takes open back.
func (g *gate) shut(ranges view.Ranges) { g.change(func() { g.opened = g.opened.Subtract(ranges) }) }

// serve serves what was replayed of others' logs.
func (g *gate) serve(l legacy) {
	g.change(func() { g.replayed = append(slices.Clone(g.replayed), l...) })
}

// unserve takes serve back.
func (g *gate) unserve(l legacy) {
	g.change(func() {
		g.replayed = slices.DeleteFunc(slices.Clone(g.replayed), func(share meta.Share) bool {
			return l.has(share)
		})
	})
}

// expect has commands on another's ranges wait, for they are about to change hands.
func (g *gate) expect(ranges view.Ranges) { g.change(func() { g.expected = g.expected.Union(ranges) }) }

// unexpect takes expect back.
func (g *gate) unexpect(ranges view.Ranges) {
	g.change(func() { g.expected = g.expected.Subtract(ranges) })
}

// withhold has operations on own ranges wait, which a migration is about to give away, until it has ended.
func (g *gate) withhold(migration uint64, ranges view.Ranges) {
	g.change(func() {
		if g.withheld == nil {
			g.withheld = map[uint64]view.Ranges{}
		}
		if !g.seen.Migrations[migration].Stage.Ended() {
			g.withheld[migration] = ranges
		}
	})
}

// unwithhold takes withhold back.
func (g *gate) unwithhold(migration uint64) { g.change(func() { delete(g.withheld, migration) }) }

// note has front doors note the keys that they use. Who is told ends that.
func (g *gate) note(s *store.Sample) (end func()) {
	g.sampled(func() { g.samples = append(slices.Clone(g.samples), s) })
	return func() {
		g.sampled(func() {
			g.samples = slices.DeleteFunc(slices.Clone(g.samples), func(one *store.Sample) bool { return one == s })
		})
	}
}

// sampled changes samples. Front doors may hold those that were.
func (g *gate) sampled(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.route(g.seen)
}

// publish shows a snapshot, if that makes a difference. The caller holds mu.
func (g *gate) publish(s *meta.Snapshot) {
	old, arriving := g.seen, g.arriving(s)
	same := old != nil && arriving.Equal(g.shown) && g.expected.Equal(g.awaited) && g.same(old, s)
	g.seen, g.shown, g.awaited = s, arriving, g.expected
	if !same {
		g.route(s)
	}
}

// route tells the front doors. The caller holds mu.
func (g *gate) route(s *meta.Snapshot) {
	native := nativeRouting(g.self, s, g.shown)
	native.Samples = g.samples
	native.Follow(g.native.Load())
	g.native.Store(native)
	own := s.Map.Ranges(g.self)
	for _, ranges := range g.withheld {
		own = own.Subtract(ranges)
	}
	g.own.Store(&own)
	whole := own.Subtract(g.shown)
	g.whole.Store(&whole)
	g.redis.Store(redisRouting(g.self, s, redis.RoutingState{
		Epoch: uint64(s.Revision), Recovering: g.shown, Expected: g.expected, Samples: g.samples, Copies: copies(g.self, s),
	}))
	g.notify()
}

// serves tells which places a truncation may empty: what this node owns and is not about to give away.
func (g *gate) serves() func(record.Place) bool { return g.own.Load().Contains }

// expires tells where records may be removed because their time is over: in what this node serves. What it is yet to replay, or is
// giving back, may have newer versions elsewhere.
func (g *gate) expires() func(record.Place) bool { return g.whole.Load().Contains }

// arriving is what this node owns and does not serve yet: what a migration brings until it was opened,
// what logs of other nodes have of it until they are replayed, and what it is about to give away.
func (g *gate) arriving(s *meta.Snapshot) view.Ranges {
	arriving := incoming(s, g.self).Subtract(g.opened)
	for _, share := range inheritance(s, g.self) {
		for _, done := range g.replayed {
			if done.Log == share.Log && done.Return == share.Return {
				share.Ranges = share.Ranges.Subtract(done.Ranges)
			}
		}
		arriving = arriving.Union(share.Ranges)
	}
	for _, ranges := range g.withheld {
		arriving = arriving.Union(ranges.Intersect(s.Map.Ranges(g.self)))
	}
	return arriving
}

// incoming is what migrations under way bring to a node.
func incoming(s *meta.Snapshot, n view.NodeID) (all view.Ranges) {
	for _, m := range s.Incoming(n) {
		all = all.Union(m.Ranges)
	}
	return all
}

// poke has the front doors look again: the lease has ended, or is back.
func (g *gate) poke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notify()
}

func (g *gate) notify() {
	close(g.changed)
	g.changed = make(chan struct{})
	for w := range g.watchers {
		w.f()
	}
}

// same tells whether two snapshots are alike in all that clients are told.
func (g *gate) same(a, b *meta.Snapshot) bool {
	return a.Map.Equal(b.Map) &&
		maps.Equal(a.Nodes, b.Nodes) && copies(g.self, a) == copies(g.self, b) && slices.Equal(a.Living(), b.Living())
}

// redisGate is the gate as the RESP front door sees it.
type redisGate struct {
	*gate
	slots *slotMover
}

func (g redisGate) Routing() *redis.Routing { return g.redis.Load() }

// MoveSlot moves a slot for a client.
func (g redisGate) MoveSlot(slot uint16, to view.NodeID, wait bool, done func(error)) {
	g.slots.MoveSlot(slot, to, wait, done)
}

func (g redisGate) Notify(f func()) (stop func()) {
	w := &watcher{f}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watchers[w] = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watchers, w)
	}
}

// nativeGate is the gate as the native front door sees it.
type nativeGate struct{ *gate }

func (g nativeGate) Routing() *session.Routing { return g.native.Load() }

func (g nativeGate) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

func redisRouting(self view.NodeID, s *meta.Snapshot, state redis.RoutingState) *redis.Routing {
	var nodes []redis.Node
	for id, n := range s.Nodes {
		nodes = append(nodes, redis.Node{ID: id, Address: n.RedisAddress, TLSAddress: n.RedisTLS, Alive: s.IsAlive(id)})
	}
	return redis.NewRouting(self, s.Map, nodes, state)
}

// copies is how many backups a node's log has.
func copies(n view.NodeID, s *meta.Snapshot) int { return s.Logs[s.Nodes[n].Log].Copies }

func nativeRouting(self view.NodeID, s *meta.Snapshot, arriving view.Ranges) *session.Routing {
	return &session.Routing{
		View: s.Map.ViewID(self), Owned: s.Map.Ranges(self), Arriving: arriving, Map: wireMap(s),
	}
}

// wireMap is the map as native clients want it.
func wireMap(s *meta.Snapshot) *wire.Map {
	m := &wire.Map{Revision: uint64(s.Revision)}
	number := map[view.NodeID]int{}
	for _, id := range s.Map.Owners() {
		number[id] = len(m.Nodes)
		m.Nodes = append(m.Nodes, wire.Node{ID: string(id), Address: s.Nodes[id].Address, View: s.Map.ViewID(id)})
	}
	for _, span := range s.Map.Spans() {
		m.Spans = append(m.Spans, wire.Span{Last: span.Range.Last, Node: number[span.Owner]})
	}
	if len(m.Spans) == 0 {
		m.Spans = []wire.Span{{Last: view.Whole.Last, Node: wire.Nobody}}
	}
	return m
}
