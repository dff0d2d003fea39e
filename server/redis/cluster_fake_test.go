package redis_test

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

// town is a cluster of servers in this process, each with a store of its own. The
// map is given out by the test; nothing moves keys but the test itself.
type town struct {
	t     testing.TB
	nodes []*townNode

	mu    sync.Mutex
	m     view.Map
	epoch uint64
}

// townNode is a node of a town: the redis.Cluster of its server.
type townNode struct {
	id   view.NodeID
	srv  *redis.Server
	st   *store.Store
	addr string

	tlsAddr string
	dead    atomic.Bool  // the lease has ended
	lives   atomic.Int64 // above 0: the lease ends when it was asked for so often

	routing atomic.Pointer[redis.Routing]
	state   redis.RoutingState // guarded by town.mu

	mu     sync.Mutex
	notify []func()
}

func (n *townNode) Routing() *redis.Routing { return n.routing.Load() }

func (n *townNode) Alive() bool {
	if n.lives.Load() > 0 && n.lives.Add(-1) == 0 {
		n.dead.Store(true)
		return true // for the last time
	}
	return !n.dead.Load()
}

func (n *townNode) Notify(f func()) func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := len(n.notify)
	n.notify = append(n.notify, f)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.notify[i] = func() {}
	}
}

func (n *townNode) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.notify {
		f()
	}
}

// newTown starts nodes that share the slots evenly.
func newTown(t testing.TB, count int, cfg redis.Config) *town {
	t.Helper()
	return newTownOn(t, count, cfg, func() store.Options { return store.Options{} })
}

func newTownOn(t testing.TB, count int, cfg redis.Config, options func() store.Options) *town {
	t.Helper()
	return buildTown(t, count, cfg, options, func(n *townNode) redis.Cluster { return n })
}

// newTownWith starts nodes whose servers ask another redis.Cluster than the node.
func newTownWith(t testing.TB, count int, cfg redis.Config, cluster func(*townNode) redis.Cluster) *town {
	t.Helper()
	return buildTown(t, count, cfg, func() store.Options { return store.Options{} }, cluster)
}

func buildTown(t testing.TB, count int, cfg redis.Config, options func() store.Options, cluster func(*townNode) redis.Cluster) *town {
	t.Helper()
	tw := &town{t: t}
	var ids []view.NodeID
	for i := range count {
		n := &townNode{id: view.NodeID("n" + strconv.Itoa(i+1))}
		n.routing.Store(redis.NewRouting(n.id, view.Map{}, nil, redis.RoutingState{}))
		own := cfg
		own.Cluster = cluster(n)
		n.srv, n.st = launch(t, options(), own)
		t.Cleanup(func() { stopServer(t, n.srv, n.st) })
		n.addr = n.srv.Addr().String()
		tw.nodes = append(tw.nodes, n)
		ids = append(ids, n.id)
	}
	m, err := view.Initial(ids...)
	if err != nil {
		t.Fatal(err)
	}
	tw.publish(func() { tw.m = m })
	return tw
}

// publish changes the map or the nodes' states and tells all nodes.
func (tw *town) publish(change func()) {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	change()
	tw.epoch++
	var nodes []redis.Node
	for _, n := range tw.nodes {
		nodes = append(nodes, redis.Node{ID: n.id, Address: n.addr, TLSAddress: n.tlsAddr, Alive: !n.dead.Load()})
	}
	for _, n := range tw.nodes {
		n.state.Epoch, n.state.Copies = tw.epoch, 2
		n.routing.Store(redis.NewRouting(n.id, tw.m, nodes, n.state))
		n.tell()
	}
}

// give moves ranges to a node in the map.
func (tw *town) give(ranges view.Ranges, to view.NodeID) {
	tw.t.Helper()
	tw.publish(func() {
		m, err := tw.m.Assign(ranges, to)
		if err != nil {
			tw.t.Fatal(err)
		}
		tw.m = m
	})
}

// slotRanges is all places of a key's slot.
func slotRanges(key string) view.Ranges {
	slot := record.SlotOf([]byte(key))
	return view.RangesOf(view.SlotsRange(slot, slot))
}

// owner is the index of the node that a key belongs to.
func (tw *town) owner(key string) int {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	id, _ := tw.m.Owner(record.PlaceOf(0, []byte(key)))
	return slices.IndexFunc(tw.nodes, func(n *townNode) bool { return n.id == id })
}

// keyOf returns the i-th key that belongs to a node.
func (tw *town) keyOf(node, i int) string {
	for n := 0; ; n++ {
		key := "key:" + strconv.Itoa(n)
		if tw.owner(key) == node {
			if i == 0 {
				return key
			}
			i--
		}
	}
}

// keyElse is a key of the same slot.
func sibling(key string) string { return "{" + key + "}.sibling" }

func (tw *town) dial(node int) *rawClient { return dialRaw(tw.t, tw.nodes[node].addr) }
