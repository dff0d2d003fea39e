package session

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire"
)

// Gate tells the front door what its node may serve. A node by itself has Alone.
//
// What makes it right:
//   - Routing is called once a round, inside of the session's guard (after
//     Begin, before End). So once all sessions have passed a cut after a change, nobody
//     executes in the old view any more.
//   - Alive is called after execution, right before results are released. When it
//     says no, nothing is answered and sessions with executed, unanswered
//     operations are closed.
type Gate interface {
	// Routing is what the node owns now. It never changes once returned, and its
	// View never falls.
	Routing() *Routing
	// Alive tells whether the node's lease is surely alive.
	Alive() bool
	// Changed returns a channel that is closed once Routing may return something newer
	// than it did before the call.
	Changed() <-chan struct{}
}

// Routing is one state of a node's ownership.
type Routing struct {
	// View is what a batch must carry to be accepted. 0 accepts nothing.
	View view.ViewID
	// Owned is what the node owns in that view.
	Owned view.Ranges
	// Gained is the view in which the node last got places that it had not had before. Of what it
	// owns now it has owned everything since, so batches of that view and later ones were made for
	// places that nobody else has had meanwhile. Only ByKeys looks at it.
	Gained view.ViewID
	// Arriving are those of Owned whose records are not all here yet. Operations
	// on them wait; all others go on.
	Arriving view.Ranges
	// Sample, if not nil, notes keys that operations use.
	Samples store.Samples
	// Map is what clients are told. The node's own view in it is View.
	Map *wire.Map
}

// Follow fills in Gained of a routing that comes after another one of the same node, or is its
// first. If views lie between the two, a place may have gone and come back.
func (r *Routing) Follow(before *Routing) {
	r.Gained = r.View
	if before != nil && (r.View == before.View || r.View == before.View+1 && before.Owned.Covers(r.Owned)) {
		r.Gained = before.Gained
	}
}

// alone is the gate of a node that owns everything and needs nobody's leave.
type alone struct{ routing Routing }

// Alone returns the gate of a single node: it owns everything, in view 1, for ever.
func Alone() Gate {
	return &alone{Routing{
		View:   1,
		Gained: 1,
		Owned:  view.RangesOf(view.Whole),
		Map: &wire.Map{
			Revision: 1,
			Nodes:    []wire.Node{{ID: "alone", View: 1}},
			Spans:    []wire.Span{{Last: view.Whole.Last, Node: 0}},
		},
	}}
}

func (a *alone) Routing() *Routing        { return &a.routing }
func (a *alone) Alive() bool              { return true }
func (a *alone) Changed() <-chan struct{} { return nil }
