package session_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/wire"
)

// testGate is a gate that a test moves.
type testGate struct {
	routing atomic.Pointer[session.Routing]
	dead    atomic.Bool

	mu      sync.Mutex
	changed chan struct{}
}

func (g *testGate) Routing() *session.Routing { return g.routing.Load() }
func (g *testGate) Alive() bool               { return !g.dead.Load() }

func (g *testGate) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

func (g *testGate) set(r *session.Routing) {
	g.routing.Store(r)
	g.notify()
}

// die ends the lease, as a node that finds it out would tell.
func (g *testGate) die() {
	g.dead.Store(true)
	g.notify()
}

func (g *testGate) notify() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.changed)
	g.changed = make(chan struct{})
}

// world is several servers on one store, so that records need not move when
// ownership does. Who owns what is a view.Map, as in a cluster.
type world struct {
	t     testing.TB
	st    *store.Store
	nodes map[view.NodeID]*worldNode

	mu       sync.Mutex
	m        view.Map
	revision uint64
}

type worldNode struct {
	id   view.NodeID
	gate *testGate
	srv  *session.Server
	addr string
	may  atomic.Pointer[view.Ranges] // what it may execute on
}

// newWorld starts nodes that share the space evenly.
func newWorld(t testing.TB, so store.Options, o session.Options, ids ...view.NodeID) *world {
	t.Helper()
	return newWorldWith(t, so, o, nil, ids...)
}

// newWorldWith gives each node a merge function "mine" of its own.
func newWorldWith(t testing.TB, so store.Options, o session.Options, mine func(*worldNode) session.Merge, ids ...view.NodeID) *world {
	t.Helper()
	w := &world{t: t, st: openStore(t, so), nodes: map[view.NodeID]*worldNode{}, revision: 1}
	m, err := view.Initial(ids...)
	if err != nil {
		t.Fatal(err)
	}
	w.m = m
	for _, id := range ids {
		n := &worldNode{id: id, gate: &testGate{changed: make(chan struct{})}}
		n.gate.routing.Store(&session.Routing{Map: &wire.Map{Spans: []wire.Span{{Last: view.Whole.Last, Node: wire.Nobody}}}})
		w.nodes[id] = n
		all := m.Ranges(id)
		n.may.Store(&all)
		opts := o
		opts.Gate, opts.Node = n.gate, string(id)
		if mine != nil {
			opts.Merges = map[string]session.Merge{"mine": mine(n)}
		}
		n.srv, n.addr = serve(t, w.st, opts)
	}
	for id := range w.nodes {
		w.show(id, nil)
	}
	return w
}

// show lets a node know the map, with ranges that are arriving there.
func (w *world) show(id view.NodeID, arriving view.Ranges) {
	n := w.nodes[id]
	r := &session.Routing{View: w.m.ViewID(id), Owned: w.m.Ranges(id), Arriving: arriving, Map: w.wireMap()}
	r.Follow(n.gate.routing.Load())
	n.gate.set(r)
}

func (w *world) wireMap() *wire.Map {
	m := &wire.Map{Revision: w.revision}
	number := map[view.NodeID]int{}
	for _, id := range w.m.Nodes() {
		number[id] = len(m.Nodes)
		m.Nodes = append(m.Nodes, wire.Node{ID: string(id), Address: w.nodes[id].addr, View: w.m.ViewID(id)})
	}
	for _, s := range w.m.Spans() {
		m.Spans = append(m.Spans, wire.Span{Last: s.Range.Last, Node: number[s.Owner]})
	}
	return m
}

// move gives ranges to another node: the old owners learn first, a cut makes sure that none of
// them executes in its old view any more, and then the new owner may.
func (w *world) move(ranges view.Ranges, to view.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.m.Assign(ranges, to)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.m, w.revision = m, w.revision+1
	for id := range w.nodes {
		if id != to {
			w.show(id, nil)
		}
	}
	passed := make(chan struct{})
	w.st.AfterGuards(func() { close(passed) })
	<-passed
	for id, n := range w.nodes {
		if id != to {
			left := m.Ranges(id)
			n.may.Store(&left)
		}
	}
	all := m.Ranges(to)
	w.nodes[to].may.Store(&all)
	w.show(to, nil)
}

func (w *world) seeds() string {
	url := "ostro://"
	for i, id := range w.m.Nodes() {
		if i > 0 {
			url += ","
		}
		url += w.nodes[id].addr
	}
	return url
}
