package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// arrivingLarge are the large values of an arrival. The record of one is shown when all its
// pieces are there; the source sends it after them, but on several ways.
//
// Who brings a record leaves it in fronts before it looks for the pieces, and who brings
// a piece looks at fronts after it is there: so the last of them shows the value.
type arrivingLarge struct {
	mu     sync.Mutex
	fronts map[valueName][]byte
	values largeValues // all of which pieces came
}

// note notes a piece.
func (l *arrivingLarge) note(of valueName, t record.TableID, key []byte, number uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values.note(of, t, key, number)
}

// pend leaves a record for the last of its pieces.
func (l *arrivingLarge) pend(of valueName, front []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fronts == nil {
		l.fronts = map[valueName][]byte{}
	}
	l.fronts[of] = front
}

// pending gives a record that waits for its pieces; nil if there is none.
func (l *arrivingLarge) pending(of valueName) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fronts[of]
}

// shown forgets a record that waited.
func (l *arrivingLarge) shown(of valueName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.fronts, of)
}

// Close ends the part of a worker of an arrival.
func (w *ImportWorker) Close() {
	if w.live != nil {
		w.live.leave(w)
	}
}

// retire closes the session of a live worker, after its last Import.
func (w *ImportWorker) retire() {
	w.busy.Lock()
	defer w.busy.Unlock()
	w.over = true
	w.live.past.add(w.count())
	w.ss.Close()
}

// ImportKnown is Import of entries whose places need not be made of their keys: known has eight bytes for each, what the source's index
// knows of it as Pull tells that, or 0. It is for workers of an arrival.
func (w *ImportWorker) ImportKnown(ctx context.Context, entries, known []byte) error {
	w.busy.Lock()
	defer w.busy.Unlock()
	if w.exact {
		w.known = known
		defer func() { w.known = nil }()
	}
	return w.importLive(ctx, entries)
}

// importLive imports for who holds busy.
func (w *ImportWorker) importLive(ctx context.Context, entries []byte) error {
	if w.over {
		return errArrivalOver
	}
	if err := w.importAll(ctx, entries); err != nil {
		w.fronts, w.pieces = nil, nil
		return err
	}
	return w.showArrived(ctx)
}

// showArrived shows the large values that the last entries made whole.
func (w *ImportWorker) showArrived(ctx context.Context) error {
	fronts, pieces := w.fronts, w.pieces
	w.fronts, w.pieces = nil, nil
	for _, b := range fronts {
		m, ok := decodeManifest(record.PtrOf(b).Value())
		if !ok {
			return errFront
		}
		w.live.large.pend(m.of, b)
		pieces = append(pieces, m.of)
	}
	slices.SortFunc(pieces, valueName.compare)
	for _, of := range slices.Compact(pieces) {
		if err := w.showValue(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

var errFront = errors.New("the record of a large value is damaged: its source must be checked")

// showValue shows a large value if all of it is there.
func (w *ImportWorker) showValue(ctx context.Context, of valueName) error {
	b := w.live.large.pending(of)
	if b == nil {
		return nil
	}
	p := record.PtrOf(b)
	m, _ := decodeManifest(p.Value())
	t := w.ss.tables.byID(p.Table())
	k := Key{Place: record.PlaceOf(p.Table(), p.Key()), Table: p.Table(), Bytes: p.Key(), in: t}
	late, err := w.late(ctx, &k, p.Version())
	if err != nil {
		return err
	}
	if !late {
		there, err := w.hasChunks(ctx, m, k.Place)
		if err != nil || !there {
			return err
		}
		w.ahead.slow = append(w.ahead.slow, importItem{k, p})
		if err := w.slowly(ctx); err != nil {
			return err
		}
	}
	w.live.large.shown(of)
	return nil
}

// late tells whether a record of this version comes too late: its pieces may be gone.
func (w *ImportWorker) late(ctx context.Context, k *Key, ver uint64) (bool, error) {
	for {
		w.ss.Begin()
		var pr index.Probe
		old, st := w.ss.find(k, &pr)
		late := st == OK && versionOf(old) >= ver || st != OK && w.ss.st.arriving.dead(k, ver)
		w.ss.End()
		if st != Cold {
			return late, nil
		}
		if err := w.ss.Fetch(ctx); err != nil {
			return false, err
		}
	}
}

// finishLarge drops the pieces of values that no record names, because their keys were
// written or removed here before they came.
func (a *Arrival) finishLarge(ctx context.Context) error {
	a.large.mu.Lock()
	values, fronts := a.large.values, slices.Collect(maps.Keys(a.large.fronts))
	a.large.mu.Unlock()
	if len(values)+len(fronts) == 0 {
		return nil
	}
	w, err := a.NewWorker()
	if err != nil {
		return err
	}
	defer w.Close()
	lack := 0
	for _, of := range fronts {
		if err := w.showValue(ctx, of); err != nil {
			return err
		}
		lack += b2i(a.large.pending(of) != nil)
	}
	if lack > 0 {
		return fmt.Errorf("%d large values lack some of their pieces: pull their places again", lack)
	}
	if err := w.dropUnnamed(ctx, values); err != nil {
		return err
	}
	a.large.mu.Lock()
	defer a.large.mu.Unlock()
	a.large.values = nil
	return nil
}

// arrivesWith tells whether the record of a chunk may still arrive.
func (st *Store) arrivesWith(p record.Ptr) bool {
	if !st.arriving.any() {
		return false
	}
	place, ok := PlaceOfEntry(p)
	return ok && st.arriving.has(place)
}
