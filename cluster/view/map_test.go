package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"pgregory.net/rapid"
)

func must(t interface {
	Helper()
	Fatal(...any)
}, m Map, err error,
) Map {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAFirstMapCoversTheSpaceEvenly(t *testing.T) {
	for n := 1; n <= 9; n++ {
		var nodes []NodeID
		for i := range n {
			nodes = append(nodes, NodeID(fmt.Sprint("n", i+1)))
		}
		m, err := Initial(nodes...)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes {
			v := m.View(node)
			if v.ID != 1 || len(v.Ranges) != 1 || v.Ranges.Fraction() < 1/float64(n)-0.001 {
				t.Fatalf("of %d nodes %s has %v", n, node, v)
			}
		}
	}
}

// naive is the model: the owner of every probe, and views that rise for
// those whose probes change.
type naive struct {
	owner map[record.Place]NodeID
	views map[NodeID]ViewID
}

func (n naive) give(ranges Ranges, to NodeID) (changed map[NodeID]bool) {
	changed = map[NodeID]bool{}
	in := modelOf(ranges)
	for _, p := range probes {
		if in[p] && n.owner[p] != to {
			changed[n.owner[p]], changed[to] = true, true
			n.owner[p] = to
		}
	}
	return changed
}

func (n naive) check(t *rapid.T, m Map) {
	for _, p := range probes {
		if got, ok := m.Owner(p); !ok || got != n.owner[p] {
			t.Fatalf("%x belongs to %s, not %s", uint64(p), got, n.owner[p])
		}
	}
	if !maps.Equal(m.views, n.views) {
		t.Fatalf("views are %v, want %v", m.views, n.views)
	}
}

func TestTransitionsAgreeWithANaiveModelOfTheSpace(t *testing.T) {
	nodes := []NodeID{"n1", "n2", "n3", "n4"}
	rapid.Check(t, func(t *rapid.T) {
		m, err := Initial(nodes[:3]...)
		m = must(t, m, err)
		n := naive{map[record.Place]NodeID{}, map[NodeID]ViewID{"n1": 1, "n2": 1, "n3": 1}}
		for _, p := range probes {
			n.owner[p], _ = m.Owner(p)
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := m
			from, to := rapid.SampledFrom(nodes).Draw(t, "from"), rapid.SampledFrom(nodes).Draw(t, "to")
			ranges := RangesOf(drawRange(t, "range"))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				m, err = m.Assign(ranges, to)
				m = must(t, m, err)
				changed := n.give(ranges, to)
				for node := range changed {
					n.views[node]++
				}
			case 1:
				m = moveBoth(t, m, n, Move{ranges, from, to})
			case 2:
				m = recoverBoth(t, m, n, from, to)
			}
			n.check(t, m)
			if err := Validate(before, m); err != nil {
				t.Fatal(err)
			}
			roundTrip(t, m)
		}
	})
}

func moveBoth(t *rapid.T, m Map, n naive, move Move) Map {
	next, err := m.Apply(move)
	if possible := move.From != move.To && m.Ranges(move.From).Covers(move.Ranges); possible != (err == nil) {
		t.Fatalf("%v: possible %v, got %v", move, possible, err)
	}
	if err != nil {
		return m
	}
	for node := range n.give(move.Ranges, move.To) {
		n.views[node]++
	}
	return next
}

func recoverBoth(t *rapid.T, m Map, n naive, dead, onto NodeID) Map {
	next, moves, err := m.Recover(dead, onto)
	if (dead == onto) != (err != nil) {
		t.Fatalf("recover %s on %s: %v", dead, onto, err)
	}
	if err != nil {
		return m
	}
	if len(next.Ranges(dead)) != 0 {
		t.Fatalf("%s still owns %v", dead, next.Ranges(dead))
	}
	changed := map[NodeID]bool{dead: true}
	for _, move := range moves {
		maps.Copy(changed, n.give(move.Ranges, move.To))
	}
	for node := range changed {
		n.views[node]++
	}
	return next
}

func TestRecoveryGivesEachHeirAShareAndRaisesEveryViewOnce(t *testing.T) {
	nodes := []NodeID{"n1", "n2", "n3"}
	rapid.Check(t, func(t *rapid.T) {
		m, err := Initial(nodes...)
		m = must(t, m, err)
		m, err = m.Assign(RangesOf(drawRanges(t, "more")...).Union(Ranges{{5, 5}}), "n1")
		m = must(t, m, err)
		heirs := []NodeID{"n2", "n4", "n5"}[:rapid.IntRange(1, 3).Draw(t, "heirs")]
		next, moves, err := m.Recover("n1", heirs...)
		next = must(t, next, err)
		var moved Ranges
		got := map[NodeID]bool{}
		for _, move := range moves {
			if len(moved.Intersect(move.Ranges)) > 0 {
				t.Fatalf("%v is given twice", moved.Intersect(move.Ranges))
			}
			moved, got[move.To] = moved.Union(move.Ranges), true
			if want := m.Ranges(move.To).Union(move.Ranges); !next.Ranges(move.To).Equal(want) {
				t.Fatalf("%s has %v, want %v", move.To, next.Ranges(move.To), want)
			}
		}
		if !moved.Equal(m.Ranges("n1")) || len(next.Ranges("n1")) > 0 {
			t.Fatalf("of %v only %v moved", m.Ranges("n1"), moved)
		}
		for _, n := range next.Nodes() {
			want := m.ViewID(n)
			if n == "n1" || got[n] {
				want++
			}
			if next.ViewID(n) != want {
				t.Fatalf("%s is in view %d, want %d", n, next.ViewID(n), want)
			}
		}
	})
}

func roundTrip(t interface {
	Helper()
	Fatalf(string, ...any)
}, m Map,
) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var back Map
	if err := json.Unmarshal(text, &back); err != nil || !back.Equal(m) {
		t.Fatalf("%s was read as %v, %v", text, back, err)
	}
}

// Every map of two nodes on the four quarters, every wished move: exactly those that begin at their
// owner happen, and nothing else changes.
func TestEveryMoveOfQuartersBetweenTwoNodes(t *testing.T) {
	quarters := RangesOf(Whole).Divide(4)
	nodes := []NodeID{"a", "b"}
	for owners := range 1 << 4 {
		m := quartersOwnedBy(t, quarters, owners)
		for wish := 1; wish < 1<<4; wish++ {
			for from := range 2 {
				next, err := m.Apply(Move{pick(quarters, wish), nodes[from], nodes[1-from]})
				ownedByFrom := owners
				if from == 0 {
					ownedByFrom = ^owners
				}
				if possible := wish&^ownedByFrom == 0; possible != (err == nil) {
					t.Fatalf("owners %04b, wish %04b from %s: %v", owners, wish, nodes[from], err)
				}
				if err != nil {
					continue
				}
				if want := quartersOwnedBy(t, quarters, owners^wish); !want.Ranges("a").Equal(next.Ranges("a")) || !want.Ranges("b").Equal(next.Ranges("b")) {
					t.Fatalf("owners %04b, wish %04b: %v", owners, wish, next.Spans())
				}
				if next.ViewID("a") != m.ViewID("a")+1 || next.ViewID("b") != m.ViewID("b")+1 {
					t.Fatalf("views went from %v to %v", m.views, next.views)
				}
			}
		}
	}
}

// quartersOwnedBy gives b the quarters whose bits are set, a the others.
func quartersOwnedBy(t *testing.T, quarters []Ranges, owners int) Map {
	m, err := Initial("a")
	m = must(t, m, err)
	m, err = m.Assign(RangesOf(Whole), "b")
	m = must(t, m, err)
	if rest := pick(quarters, ^owners); len(rest) > 0 {
		m, err = m.Assign(rest, "a")
		m = must(t, m, err)
	}
	return m
}

func pick(parts []Ranges, bits int) Ranges {
	var s Ranges
	for i, p := range parts {
		if bits>>i&1 == 1 {
			s = s.Union(p)
		}
	}
	return s
}

func TestTransitionsThatMakeNoSenseAreRefused(t *testing.T) {
	m, err := Initial("n1", "n2")
	m = must(t, m, err)
	mine := m.Ranges("n1")
	for _, c := range []struct {
		name, want string
		do         func() error
	}{
		{"no nodes", "no node is left", func() error { _, err := Initial(); return err }},
		{"twice", "n1 is named twice", func() error { _, err := Initial("n1", "n1"); return err }},
		{"a bad name", "is no name of a node", func() error { _, err := Initial("a/b"); return err }},
		{"assign before the first map", "begin with Initial", func() error { _, err := Map{}.Assign(mine, "n1"); return err }},
		{"assign to a bad name", "is no name of a node", func() error { _, err := m.Assign(mine, ""); return err }},
		{"assign nothing", "name a range", func() error { _, err := m.Assign(nil, "n1"); return err }},
		{"move nothing", "name a range", func() error { _, err := m.Apply(Move{nil, "n1", "n2"}); return err }},
		{"move to itself", "has these ranges already", func() error { _, err := m.Apply(Move{mine, "n1", "n1"}); return err }},
		{"move another's", "n2 does not own", func() error { _, err := m.Apply(Move{mine, "n2", "n1"}); return err }},
		{"recover onto itself", "cannot take over from itself", func() error { _, _, err := m.Recover("n1", "n2", "n1"); return err }},
		{"recover onto nobody", "no node is left", func() error { _, _, err := m.Recover("n1"); return err }},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestADrainedNodeOwnsNothingAndKeepsItsView(t *testing.T) {
	m, err := Initial("n1", "n2", "n3")
	m = must(t, m, err)
	moves, err := m.Drain("n2", "n1", "n3")
	if err != nil || len(moves) != 2 {
		t.Fatalf("%v, %v", moves, err)
	}
	for _, move := range moves {
		m, err = m.Apply(move)
		m = must(t, m, err)
	}
	if v := m.View("n2"); v.ID != 3 || len(v.Ranges) != 0 {
		t.Fatalf("n2 has %v", v)
	}
	if got := fmt.Sprint(m.Owners(), m.Nodes()); got != "[n1 n3] [n1 n2 n3]" {
		t.Fatal(got)
	}
}

func TestADeadNodeThatOwnsNothingIsFencedAllTheSame(t *testing.T) {
	m, err := Initial("n1", "n2")
	m = must(t, m, err)
	next, moves, err := m.Recover("n9", "n1")
	if err != nil || len(moves) != 0 {
		t.Fatalf("%v, %v", moves, err)
	}
	if next.ViewID("n9") != 1 || next.ViewID("n1") != 1 {
		t.Fatalf("views are %v", next.views)
	}
}

func TestValidateFindsEachKindOfFault(t *testing.T) {
	good, err := Initial("a", "b")
	good = must(t, good, err)
	half := good.Ranges("a")[0].Last
	with := func(change func(m *Map)) Map {
		m := good.clone()
		change(&m)
		return m
	}
	for _, c := range []struct {
		want  string
		after Map
	}{
		{"", good},
		{"nobody owns anything", Map{}},
		{"nobody owns 0000000000000000-0000000000000000", with(func(m *Map) { m.spans[0].Range.First = 1 })},
		{"nobody owns 7fffffffffffffff-7fffffffffffffff", with(func(m *Map) { m.spans[0].Range.Last = half - 1 })},
		{"nobody owns ffffffffffffffff-ffffffffffffffff", with(func(m *Map) { m.spans[1].Range.Last-- })},
		{"8000000000000000 has two owners, one of them b", with(func(m *Map) { m.spans[0].Range.Last = half + 1 })},
		{"lies beyond the last place", with(func(m *Map) { m.spans = append(m.spans, Span{Range{0, 5}, "a"}) })},
		{"ends before it begins", with(func(m *Map) { m.spans[1].Range.Last = 3 })},
		{"a is cut in two at 8000000000000000", with(func(m *Map) { m.spans[1].Owner = "a" })},
		{"b owns 8000000000000000-ffffffffffffffff and has no view", with(func(m *Map) { delete(m.views, "b") })},
		{"c has view 0", with(func(m *Map) { m.views["c"] = 0 })},
		{"is no name of a node", with(func(m *Map) { m.views[" "] = 1 })},
		{"the view of b fell from 1 to 0", with(func(m *Map) { m.spans, m.views = []Span{{Whole, "a"}}, map[NodeID]ViewID{"a": 2} })},
		{"the ranges of b changed and its view stayed 1", with(func(m *Map) { m.spans, m.views["a"] = []Span{{Whole, "a"}}, 2 })},
	} {
		err := Validate(good, c.after)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}

func TestOverFindsTheSpansThatARangeTouches(t *testing.T) {
	m, err := Initial("n1", "n2", "n3")
	if err != nil {
		t.Fatal(err)
	}
	all := m.Spans()
	for _, c := range []struct {
		r        Range
		from, to int
	}{
		{Whole, 0, 3},
		{all[1].Range, 1, 2},
		{Range{First: all[0].Range.Last, Last: all[1].Range.First}, 0, 2},
		{Range{First: all[2].Range.Last, Last: all[2].Range.Last}, 2, 3},
	} {
		if got := m.Over(c.r); fmt.Sprint(got) != fmt.Sprint(all[c.from:c.to]) {
			t.Errorf("%s: %v", c.r, got)
		}
	}
	if got := (Map{}).Over(Whole); len(got) != 0 {
		t.Errorf("before the first assignment: %v", got)
	}
}
