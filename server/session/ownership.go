package session

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire"
)

// Check is how the front door finds out whether the keys of a batch are its node's.
type Check uint8

const (
	// ByViews compares two integers for a whole batch. A client that is in the node's view knows
	// which keys are the node's; one that sends others harms its own records only.
	ByViews Check = iota
	// ByKeys looks every key up in the node's ranges, whatever the client believes. It
	// is there to compare.
	ByKeys
)

// accepts tells whether a batch that was made for a view may be looked at.
//
// By keys an older view will do, unless the node has got places since: while they were another's
// an operation may have been tried there, answered and forgotten, and must not be executed again. A
// view that this node has not heard of yet is no harm: what it brings is not owned here so far.
func (w *worker) accepts(v view.ViewID) bool {
	if w.srv.opts.Check == ByKeys {
		return v != 0 && v >= w.routing.Gained
	}
	return v != 0 && v == w.routing.View
}

// here tells whether k's record, in a batch that was accepted, is served by this node and is all here.
func (w *worker) here(k *store.Key) bool {
	if w.all {
		return true
	}
	return w.owns(k.Place) && !w.routing.Arriving.Contains(k.Place)
}

// owns is what here needs to know of the place itself.
func (w *worker) owns(p record.Place) bool {
	return w.srv.opts.Check == ByViews || w.routing.Owned.Contains(p)
}

// everything tells whether all that accepted batches may ask for is here.
func (w *worker) everything() bool {
	return len(w.routing.Arriving) == 0 && w.srv.opts.Check == ByViews
}

// reject sends a batch back whole, with the map.
func (w *worker) reject(out *buffer, b *wire.Batch) {
	w.tally.stale++
	out.seal()
	out.b = wire.AppendStale(out.b, wire.Stale{Number: b.Number, View: w.routing.View})
	out.b = wire.AppendMap(out.b, w.routing.Map)
}
