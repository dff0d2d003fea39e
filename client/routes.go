package client

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/wire"
)

// routes is a map whose nodes all have addresses. It never changes.
type routes struct{ wire.Map }

// routesOf fills in the address of a node that does not know its own.
func routesOf(m *wire.Map, from string) *routes {
	r := &routes{*m}
	for i := range r.Nodes {
		if r.Nodes[i].Address == "" {
			r.Nodes[i].Address = from
		}
	}
	return r
}

// address is where the owner of a place is met.
func (r *routes) address(p record.Place) (string, bool) {
	n := r.Owner(p)
	if n == wire.Nobody {
		return "", false
	}
	return r.Nodes[n].Address, true
}

// viewAt is the view of the node that is met at an address; 0 if there is none.
func (r *routes) viewAt(address string) view.ViewID {
	for i := range r.Nodes {
		if r.Nodes[i].Address == address {
			return r.Nodes[i].View
		}
	}
	return 0
}

// spanOf is the span of one owner's places that p lies in.
func (r *routes) spanOf(p record.Place) view.Range {
	first := record.Place(0)
	for _, s := range r.Spans {
		if p <= s.Last {
			return view.Range{First: first, Last: s.Last}
		}
		first = s.Last + 1
	}
	return view.Whole
}

// newer tells whether r shall replace what is known.
func (r *routes) newer(known *routes) bool { return known == nil || r.Revision > known.Revision }
