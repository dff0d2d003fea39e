package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// callGraph finds which functions can be on the stack twice, and how deep calls go without those. Functions that can
// recur keep account of the stack; if the others could fill too much of it by themselves, all do.
func (f *facts) callGraph(m *wasm.Module, l Limits) {
	g := newGraph(f, m)
	for n := range g.edges {
		if g.index[n] == 0 {
			g.visit(uint32(n))
		}
	}
	all := g.deepest > uint64(l.StackBytes)/2
	for own := range f.infos {
		fi := &f.infos[own]
		fi.counts = fi.recursive || all
	}
}

// graph is the module's functions, and behind them its types: whoever calls by table calls all functions of a type
// that are in tables.
type graph struct {
	f       *facts
	edges   [][]uint32
	index   []int // order of visits, 0 before
	low     []int
	onStack []bool
	stack   []uint32
	depth   []uint64 // bytes of stack that a call takes with all it calls, without recursion
	next    int
	deepest uint64
}

func newGraph(f *facts, m *wasm.Module) *graph {
	funcs, n := len(f.infos), len(f.infos)+len(m.Types)
	g := &graph{f: f, edges: make([][]uint32, n), index: make([]int, n), low: make([]int, n), onStack: make([]bool, n), depth: make([]uint64, n)}
	same := map[string]uint32{} // types of one shape are one
	canon := make([]uint32, len(m.Types))
	for i, t := range m.Types {
		key := string(t.Params) + ":" + string(t.Results)
		if _, known := same[key]; !known {
			same[key] = uint32(funcs + i)
		}
		canon[i] = same[key]
	}
	for own := range f.infos {
		g.edges[own] = append(g.edges[own], f.infos[own].calls...)
		for _, t := range f.infos[own].indirect {
			g.edges[own] = append(g.edges[own], canon[t])
		}
	}
	for _, own := range f.referred {
		t := canon[m.Funcs[own]]
		g.edges[t] = append(g.edges[t], own)
	}
	return g
}

// visit is Tarjan's search for strongly connected components.
func (g *graph) visit(n uint32) {
	g.next++
	g.index[n], g.low[n] = g.next, g.next
	g.stack, g.onStack[n] = append(g.stack, n), true
	self := false
	for _, to := range g.edges[n] {
		if to == n {
			self = true
		}
		if g.index[to] == 0 {
			g.visit(to)
			g.low[n] = min(g.low[n], g.low[to])
		} else if g.onStack[to] {
			g.low[n] = min(g.low[n], g.index[to])
		}
		g.depth[n] = max(g.depth[n], g.depth[to])
	}
	g.leave(n, self)
}

func (g *graph) leave(n uint32, self bool) {
	if int(n) < len(g.f.infos) {
		g.depth[n] += g.f.infos[n].frame
	}
	g.deepest = max(g.deepest, g.depth[n])
	if g.low[n] != g.index[n] {
		return
	}
	first := len(g.stack) - 1
	for g.stack[first] != n {
		first--
	}
	loop := self || len(g.stack)-first > 1
	for _, member := range g.stack[first:] {
		g.onStack[member] = false
		if loop && int(member) < len(g.f.infos) {
			g.f.infos[member].recursive = true
		}
	}
	g.stack = g.stack[:first]
}
