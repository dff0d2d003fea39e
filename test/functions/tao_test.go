package functions

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// graph is what TAO is about, as simple as can be.
type graph struct {
	objects map[uint64]object
	edges   map[list]map[uint64]edge
	inverse map[uint32]uint32
}

type object struct {
	otype uint32
	data  string
}

type list struct {
	id1   uint64
	atype uint32
}

type edge struct {
	id2  uint64
	time uint32
	data string
}

func newGraph() *graph {
	return &graph{map[uint64]object{}, map[list]map[uint64]edge{}, map[uint32]uint32{}}
}

func (g *graph) put(l list, e edge) {
	if g.edges[l] == nil {
		g.edges[l] = map[uint64]edge{}
	}
	g.edges[l][e.id2] = e
}

func (g *graph) add(l list, e edge) (fresh bool) {
	_, had := g.edges[l][e.id2]
	g.put(l, e)
	if inverse, has := g.inverse[l.atype]; has {
		g.put(list{e.id2, inverse}, edge{l.id1, e.time, e.data})
	}
	return !had
}

func (g *graph) del(l list, id2 uint64) (edge, bool) {
	e, had := g.edges[l][id2]
	delete(g.edges[l], id2)
	if inverse, has := g.inverse[l.atype]; has {
		delete(g.edges[list{id2, inverse}], l.id1)
	}
	return e, had
}

// sorted returns a list's associations, newest first.
func (g *graph) sorted(l list) []edge {
	var all []edge
	for _, e := range g.edges[l] {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b edge) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.id2, a.id2))
	})
	return all
}

// wire is how a response has associations.
func wire(edges []edge) string {
	var b []byte
	for _, e := range edges {
		b = binary.LittleEndian.AppendUint64(b, e.id2)
		b = binary.LittleEndian.AppendUint32(b, e.time)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.data)))
		b = append(b, e.data...)
	}
	return string(b)
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func part(all []edge, from, limit int) []edge {
	from = min(from, len(all))
	return all[from:min(from+limit, len(all))]
}

func between(all []edge, high, low uint32) []edge {
	return slices.DeleteFunc(slices.Clone(all), func(e edge) bool { return e.time > high || e.time < low })
}

// player draws operations and compares the function with the model.
type player struct {
	*rapid.T
	g     *guest
	model *graph
	ids   []uint64 // of objects that were made
	kinds *rapid.Generator[uint32]
	nodes *rapid.Generator[uint64]
	times *rapid.Generator[uint32]
	data  *rapid.Generator[string]
}

func (p *player) same(want, function string, args ...any) {
	p.Helper()
	if got := p.g.call(p, function, "social", args...); got != want {
		p.Fatalf("%s %q: %q, want %q", function, args, got, want)
	}
}

func (p *player) list() list { return list{p.nodes.Draw(p.T, "id1"), p.kinds.Draw(p.T, "type")} }

func (p *player) object() uint64 {
	if len(p.ids) > 0 && rapid.Bool().Draw(p.T, "known") {
		return rapid.SampledFrom(p.ids).Draw(p.T, "object")
	}
	return p.nodes.Draw(p.T, "object")
}

func (p *player) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"obj_add": func(t *rapid.T) {
			o := object{p.kinds.Draw(t, "type"), p.data.Draw(t, "data")}
			id, err := strconv.ParseUint(p.g.call(t, "obj_add", "social", o.otype, o.data), 10, 64)
			if _, taken := p.model.objects[id]; err != nil || taken || id == 0 {
				t.Fatalf("id %d, taken %v: %v", id, taken, err)
			}
			p.model.objects[id] = o
			p.ids = append(p.ids, id)
		},
		"obj_get": func(*rapid.T) {
			id, want := p.object(), ""
			if o, there := p.model.objects[id]; there {
				want = string(binary.LittleEndian.AppendUint32(nil, o.otype)) + o.data
			}
			p.same(want, "obj_get", id)
		},
		"obj_update": func(t *rapid.T) {
			id, data := p.object(), p.data.Draw(t, "data")
			o, there := p.model.objects[id]
			p.same(flag(there), "obj_update", id, data)
			if there {
				p.model.objects[id] = object{o.otype, data}
			}
		},
		"obj_delete": func(*rapid.T) {
			id := p.object()
			_, there := p.model.objects[id]
			p.same(flag(there), "obj_delete", id)
			delete(p.model.objects, id)
		},
		"assoc_add": func(t *rapid.T) {
			l, e := p.list(), edge{p.nodes.Draw(t, "id2"), p.times.Draw(t, "time"), p.data.Draw(t, "data")}
			p.same(flag(p.model.add(l, e)), "assoc_add", l.id1, l.atype, e.id2, e.time, e.data)
		},
		"assoc_delete": func(t *rapid.T) {
			l, id2 := p.list(), p.nodes.Draw(t, "id2")
			_, had := p.model.del(l, id2)
			p.same(flag(had), "assoc_delete", l.id1, l.atype, id2)
		},
		"assoc_change_type": func(t *rapid.T) {
			l, id2, to := p.list(), p.nodes.Draw(t, "id2"), p.kinds.Draw(t, "to")
			e, had := p.model.del(l, id2)
			if had {
				p.model.add(list{l.id1, to}, e)
			}
			p.same(flag(had), "assoc_change_type", l.id1, l.atype, id2, to)
		},
		"assoc_get": func(t *rapid.T) {
			l, asked := p.list(), rapid.SliceOfN(p.nodes, 1, 5).Draw(t, "ids")
			var found []edge
			for _, id2 := range asked {
				if e, there := p.model.edges[l][id2]; there {
					found = append(found, e)
				}
			}
			text := strings.Trim(strings.ReplaceAll(fmt.Sprint(asked), " ", ","), "[]")
			p.same(wire(found), "assoc_get", l.id1, l.atype, text)
			high, low := p.times.Draw(t, "high"), p.times.Draw(t, "low")
			p.same(wire(between(found, high, low)), "assoc_get", l.id1, l.atype, text, high, low)
		},
		"assoc_range": func(t *rapid.T) {
			l, from, limit := p.list(), rapid.IntRange(0, 60).Draw(t, "from"), rapid.IntRange(0, 60).Draw(t, "limit")
			p.same(wire(part(p.model.sorted(l), from, limit)), "assoc_range", l.id1, l.atype, from, limit)
		},
		"assoc_time_range": func(t *rapid.T) {
			l, limit := p.list(), rapid.IntRange(0, 60).Draw(t, "limit")
			high, low := p.times.Draw(t, "high"), p.times.Draw(t, "low")
			want := part(between(p.model.sorted(l), high, low), 0, limit)
			p.same(wire(want), "assoc_time_range", l.id1, l.atype, high, low, limit)
		},
		"assoc_count": func(*rapid.T) {
			l := p.list()
			p.same(fmt.Sprint(len(p.model.edges[l])), "assoc_count", l.id1, l.atype)
		},
	}
}

func TestTAOAnswersAsAGraphOfMapsDoes(t *testing.T) {
	g := newExample(t, "tao")
	rapid.Check(t, func(t *rapid.T) {
		g.data = table{}
		p := &player{
			T: t, g: g, model: newGraph(),
			kinds: rapid.Uint32Range(1, 4),
			nodes: rapid.OneOf(rapid.Uint64Range(1, 40), rapid.Just(uint64(1)<<63)),
			times: rapid.OneOf(rapid.Uint32Range(1, 20), rapid.Uint32()),
			data:  rapid.OneOf(rapid.StringN(0, 8, -1), rapid.Just(strings.Repeat("long ", 160)), rapid.Just(strings.Repeat("longer ", 400))),
		}
		p.same("", "assoc_inverse", 1, 2) // Likes and is liked by; 3 is friendship.
		p.same("", "assoc_inverse", 3, 3)
		p.model.inverse = map[uint32]uint32{1: 2, 2: 1, 3: 3}
		t.Repeat(p.actions())
	})
}

func TestLongListsOfTAOStayInOrder(t *testing.T) {
	g := newExample(t, "tao")
	model := newGraph()
	l := list{7, 1}
	for i := range 3000 {
		e := edge{id2: uint64(i*7919%3000 + 1), time: uint32(i * 31 % 2000), data: fmt.Sprint("since ", i)}
		model.add(l, e)
		g.call(t, "assoc_add", "g", l.id1, l.atype, e.id2, e.time, e.data)
	}
	all := model.sorted(l)
	check := func() {
		t.Helper()
		if got := g.call(t, "assoc_count", "g", 7, 1); got != fmt.Sprint(len(all)) {
			t.Fatalf("%s associations, want %d", got, len(all))
		}
		for from := 0; from <= len(all); from += 97 {
			if g.call(t, "assoc_range", "g", 7, 1, from, 50) != wire(part(all, from, 50)) {
				t.Fatalf("wrong range from %d", from)
			}
		}
		for high := uint32(0); high < 2000; high += 111 {
			want := wire(part(between(all, high, high/2), 0, 100))
			if g.call(t, "assoc_time_range", "g", 7, 1, high, high/2, 100) != want {
				t.Fatalf("wrong range of times %d to %d", high/2, high)
			}
		}
	}
	check()
	for _, e := range all[:2990] { // The newest first: the root is filled from its blocks.
		g.call(t, "assoc_delete", "g", 7, 1, e.id2)
	}
	all = all[2990:]
	check()
	for _, e := range all {
		g.call(t, "assoc_delete", "g", 7, 1, e.id2)
	}
	if len(g.data) != 0 {
		t.Fatalf("an empty list has left %d records", len(g.data))
	}
}

func TestTAORefusesWhatIsNoGraph(t *testing.T) {
	g := newExample(t, "tao")
	g.refused(t, 1, "obj_add", "{a}", 1, "data")
	g.refused(t, 1, "obj_add", strings.Repeat("a", 65), 1, "data")
	g.refused(t, 241, "obj_add", "", 1, "data")
	g.refused(t, 241, "obj_add", "g", "one", "data")
	g.refused(t, 241, "obj_add", "g", uint64(1)<<32, "data")
	g.refused(t, 241, "obj_add", "g", 1)
	g.refused(t, 241, "assoc_get", "g", 1, 1, "2,,3")
	g.call(t, "assoc_inverse", "g", 1, 2)
	g.call(t, "assoc_inverse", "g", 2, 1)
	g.refused(t, 2, "assoc_inverse", "g", 1, 3)
	g.refused(t, 2, "assoc_inverse", "g", 3, 1)
	g.data["{g}:a:5:1"] = "short"
	g.refused(t, 3, "assoc_count", "g", 5, 1)
}
