package view

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Move is a wish: Ranges go from From to To.
type Move struct {
	Ranges Ranges `json:"ranges"`
	From   NodeID `json:"from"`
	To     NodeID `json:"to"`
}

// Initial deals the whole space out to nodes, in their order, in equal parts cut at the borders
// of slots. Each begins in view 1.
func Initial(nodes ...NodeID) (Map, error) {
	if err := distinct(nodes); err != nil {
		return Map{}, err
	}
	var m Map
	for i, part := range RangesOf(Whole).Divide(len(nodes)) {
		m = m.with(part, nodes[i])
	}
	for n := range m.views {
		m.views[n] = 1
	}
	return m, Validate(Map{}, m)
}

// Assign gives ranges to a node, whoever had them. The views of all whose
// ranges change go up by one.
func (m Map) Assign(ranges Ranges, to NodeID) (Map, error) {
	if m.IsZero() {
		return Map{}, errors.New("nothing is assigned yet: begin with Initial")
	}
	if err := to.Check(); err != nil {
		return Map{}, err
	}
	if len(ranges) == 0 {
		return Map{}, fmt.Errorf("there is nothing to give to %s: name a range", to)
	}
	next := m.with(ranges, to)
	return next, Validate(m, next)
}

// Apply moves ranges from one node to another and raises the views of both. It
// fails unless the first owns all of them.
func (m Map) Apply(move Move) (Map, error) {
	switch missing := move.Ranges.Subtract(m.Ranges(move.From)); {
	case move.From == move.To:
		return Map{}, fmt.Errorf("%s has these ranges already: move them to another node", move.To)
	case len(missing) > 0:
		return Map{}, fmt.Errorf("%s does not own %s: look at the map again and move what it owns", move.From, missing)
	}
	return m.Assign(move.Ranges, move.To)
}

// Recover gives all that a dead node owned to several others, about equally
// much to each, and raises the views of all whose ranges change. The dead node's view goes up
// in any case, so that batches which reach it are rejected whatever it owned.
func (m Map) Recover(dead NodeID, onto ...NodeID) (Map, []Move, error) {
	moves, err := m.Drain(dead, onto...)
	if err != nil {
		return Map{}, nil, err
	}
	next := m
	for _, move := range moves {
		next = next.with(move.Ranges, move.To)
	}
	next = next.clone()
	// However many moves there were, it is one change: one step for each node.
	for n := range next.views {
		next.views[n] = m.views[n]
		if !m.Ranges(n).Equal(next.Ranges(n)) {
			next.views[n]++
		}
	}
	next.views[dead] = m.views[dead] + 1
	return next, moves, Validate(m, next)
}

// Drain plans how a node gives all that it owns to several others, about
// equally much to each. Whoever carries the moves out, one after the other or at once, ends
// with a node that owns nothing.
func (m Map) Drain(from NodeID, onto ...NodeID) ([]Move, error) {
	if err := distinct(onto); err != nil {
		return nil, err
	}
	if slices.Contains(onto, from) {
		return nil, fmt.Errorf("%s cannot take over from itself: name other nodes", from)
	}
	var moves []Move
	for i, part := range m.Ranges(from).Divide(len(onto)) {
		if len(part) > 0 {
			moves = append(moves, Move{part, from, onto[i]})
		}
	}
	return moves, nil
}

func distinct(nodes []NodeID) error {
	if len(nodes) == 0 {
		return errors.New("no node is left to own the ranges: start one")
	}
	seen := map[NodeID]bool{}
	for _, n := range nodes {
		if err := n.Check(); err != nil {
			return err
		}
		if seen[n] {
			return fmt.Errorf("%s is named twice: name each node once", n)
		}
		seen[n] = true
	}
	return nil
}

// with is the map after ranges went to a node, with the views of all whose ranges
// changed raised by one.
func (m Map) with(ranges Ranges, to NodeID) Map {
	next := m.clone()
	taken := map[NodeID]bool{}
	var spans []Span
	for _, s := range m.spans {
		rest := RangesOf(s.Range).Subtract(ranges.near(s.Range))
		if s.Owner != to && !rest.Equal(Ranges{s.Range}) {
			taken[s.Owner] = true
		}
		for _, r := range rest {
			spans = append(spans, Span{r, s.Owner})
		}
	}
	for _, r := range ranges {
		spans = append(spans, Span{r, to})
	}
	next.spans = joined(spans)
	for n := range taken {
		next.views[n]++
	}
	if len(taken) > 0 || next.views[to] == 0 {
		next.views[to]++
	}
	return next
}

func (m Map) clone() Map {
	views := maps.Clone(m.views)
	if views == nil {
		views = map[NodeID]ViewID{}
	}
	return Map{slices.Clone(m.spans), views}
}

// joined sorts spans and makes one of neighbours that have the same owner.
func joined(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Range.First, b.Range.First) })
	var out []Span
	for _, s := range spans {
		if n := len(out); n > 0 && out[n-1].Owner == s.Owner && out[n-1].Range.Last+1 == s.Range.First {
			out[n-1].Range.Last = s.Range.Last
			continue
		}
		out = append(out, s)
	}
	return out
}
