package view

import (
	"maps"
	"slices"
	"sort"

	"github.com/ostrodb/ostro/engine/record"
)

// Map is the owner of every place, and the view number of every node that owns
// or ever owned one. It never changes. The zero Map is that of a cluster before its first
// assignment: nobody owns anything.
//
// Spans lie in order and without a gap; neighbours have different owners.
type Map struct {
	spans []Span
	views map[NodeID]ViewID
}

// Span is a range with its owner.
type Span struct {
	Range Range  `json:"range"`
	Owner NodeID `json:"owner"`
}

// View is what a node owns, numbered.
type View struct {
	Node   NodeID
	ID     ViewID
	Ranges Ranges
}

// IsZero tells whether nothing was ever assigned.
func (m Map) IsZero() bool { return len(m.spans) == 0 && len(m.views) == 0 }

// Owner returns who owns p, and nobody in a zero Map.
func (m Map) Owner(p record.Place) (NodeID, bool) {
	i := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].Range.Last >= p })
	if i == len(m.spans) || m.spans[i].Range.First > p {
		return "", false
	}
	return m.spans[i].Owner, true
}

// Over returns the spans of which some place lies in r, whole.
func (m Map) Over(r Range) []Span {
	from := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].Range.Last >= r.First })
	to := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].Range.First > r.Last })
	return slices.Clone(m.spans[from:max(from, to)])
}

// ViewID returns a node's view number.
func (m Map) ViewID(n NodeID) ViewID { return m.views[n] }

// Ranges returns what a node owns.
func (m Map) Ranges(n NodeID) Ranges {
	var owned Ranges
	for _, s := range m.spans {
		if s.Owner == n {
			owned = append(owned, s.Range)
		}
	}
	return owned
}

// View returns a node's number and ranges together.
func (m Map) View(n NodeID) View { return View{n, m.views[n], m.Ranges(n)} }

// Nodes returns all that own or ever owned a place, sorted.
func (m Map) Nodes() []NodeID { return slices.Sorted(maps.Keys(m.views)) }

// Owners returns all that own a place, sorted.
func (m Map) Owners() []NodeID {
	owners := map[NodeID]bool{}
	for _, s := range m.spans {
		owners[s.Owner] = true
	}
	return slices.Sorted(maps.Keys(owners))
}

// Spans returns the whole space, in order. The slice is the caller's.
func (m Map) Spans() []Span { return slices.Clone(m.spans) }

// Equal tells whether owners and view numbers are the same.
func (m Map) Equal(o Map) bool {
	return slices.Equal(m.spans, o.spans) && maps.Equal(m.views, o.views)
}
