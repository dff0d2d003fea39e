package store

import (
	"context"

	"github.com/ostrodb/ostro/engine/record"
)

// An import of what another store still owns and changes: a copy. It is fed with what that store has of a key at
// some time, and later, when the key has changed, with what it has then. Between such rounds Apply makes it whole.
//
// Nothing of these places is removed here by itself, by time or for want of room: the version of such a removal may
// be that of a record which the other store gives the key next, and of the two a replay would keep either.

// isForeign tells whether another store owns a place and this one only copies it.
func (is *imports) isForeign(p record.Place) bool {
	all := is.open.Load()
	if all == nil {
		return false
	}
	for _, im := range *all {
		if im.foreign && im.owns(p) {
			return true
		}
	}
	return false
}

// foreign tells whether a record or a piece of one belongs to a place that is only copied.
func (st *Store) foreign(p record.Ptr) bool {
	if !st.imports.any() || p.Table() == completionTable {
		return false
	}
	place, ok := PlaceOfEntry(p)
	return ok && st.imports.isForeign(place)
}

// others tells whether a record or a piece of one belongs to a place where nothing is removed because its time is over: one
// that another node serves, that is copied here, or whose records this node has until the other has them; or one of which
// this node has not replayed all yet. What was sent to its owner is gone here without a tombstone, and an older version of it
// may be back after a restart: the deletion of that would have the version of what was sent, and hide it if the place comes back.
func (st *Store) others(p record.Ptr) bool {
	if p.Table() == completionTable {
		return false
	}
	place, ok := PlaceOfEntry(p)
	return ok && (st.imports.isForeign(place) || !st.opts.Expires()(place))
}

// Apply ends a round of an import of what another store owns: large values become visible, and what was removed
// goes. No worker imports meanwhile. After an error it may be called again.
func (im *Importer) Apply(ctx context.Context) error {
	workers, large, err := im.finishing(ctx)
	if err != nil {
		return err
	}
	if err := each(workers, func(w *ImportWorker) error { return w.removeDead(ctx, &w.tombs) }); err != nil {
		return err
	}
	if err := workers[0].dropUnnamed(ctx, large); err != nil {
		return err
	}
	for _, w := range workers {
		w.fronts, w.tombs, w.values = nil, graveyard{}, nil
	}
	return nil
}

// Durable waits until all that the worker has imported is as durable as the store promises.
func (w *ImportWorker) Durable(ctx context.Context) error {
	return w.ss.waitDurable(ctx, w.ss.Seal())
}

// Succeed says what the other store's Ceiling was in the end: versions go on above it.
func (st *Store) Succeed(ceiling uint64) {
	st.raiseCeiling(ceiling)
	st.floors.raiseAll(ceiling)
}
