package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// Importer takes entries of other logs into a store: what recovery on an heir is
// made of. Any number of workers feed it, in any order, while the store serves
// keys of other places. When all is fed, Finish makes it whole:
//
//	NewImporter ── NewWorker ─┬─ Import, Import, ...  ── Finish ── Adopt
//	               NewWorker ─┘  (in parallel)
//
// Of each key the highest version wins, tombstones included, as in local
// recovery. So nothing depends on the order of entries, and to import the same
// ones again, or the rest of an import that was broken off, gives the same result.
//
// The caller sees to it that until Finish returned
//   - nobody writes to the places that are imported: their versions are not known;
//   - nobody is told what is there: a record may still be followed by its tombstone.
//
// If several logs may have records of a place, as when an heir died half-way, all
// of them go through one Importer before any of them is given up: each may have
// the tombstones of another's records.
//
// How it works: records go to a head and into the index at once if they are the
// newest so far. Tombstones are remembered, and what is below one goes in the
// end: an older record of its key may come at any time. So may the removal of a record
// that expires meanwhile; see noteRemoval. Pieces of large values are taken at once,
// their records in the end, when all pieces must be there.
//
// With Aside records go to side segments, which have no copies until Adopt has returned;
// see import_aside.go.
type Importer struct {
	st      *Store
	owns    func(record.Place) bool
	foreign bool
	aside   []Range

	mu      sync.Mutex
	workers []*ImportWorker
	sides   []*hlog.Side // until they are part of the log
	late    graveyard    // removals by others while it goes on
	over    bool
}

// ImportOptions say what is imported.
type ImportOptions struct {
	// Owns tells whether a place is imported; entries of others are passed over. Nil takes all.
	Owns func(record.Place) bool
	// Foreign says that another store owns these places, and changes them while they are imported: see Apply.
	Foreign bool
	// Aside are the places that are imported, if the logs that have their records are kept until Adopt has
	// returned. Empty: Finish makes everything as durable as any write.
	Aside []Range
}

// ImportStats count what an importer has done.
type ImportStats struct {
	Entries    int64 // that were looked at
	Taken      int64 // that are in this store's log now
	Bytes      int64 // of those
	Tombstones int64 // that are remembered until Finish
}

var errImportOver = errors.New("the import is over: begin another one")

// NewImporter begins an import.
func (st *Store) NewImporter(o ImportOptions) (*Importer, error) {
	if st.closed.Load() {
		return nil, ErrClosed
	}
	im := &Importer{st: st, owns: o.Owns, foreign: o.Foreign, aside: slices.Clone(o.Aside)}
	if im.owns == nil {
		im.owns = func(record.Place) bool { return true }
	}
	st.imports.add(im)
	return im, nil
}

// ImportWorker is one goroutine's part of an import.
type ImportWorker struct {
	ss   *Session
	owns func(record.Place) bool
	live *Arrival   // nil for a recovery
	side *hlog.Side // likewise
	busy sync.Mutex // held by Import, and by whoever ends a live worker
	over bool

	tombs  graveyard
	fronts [][]byte    // records of large values
	pieces []valueName // of which pieces came; if live
	values largeValues
	ahead  importBatch
	run    *importRun // if live
	known  []byte     // what is known of the places of the entries to come; likewise
	exact  bool       // that is enough to tell whether one is imported

	lastTable lastTable
	stats     struct{ entries, taken, bytes, tombstones atomic.Int64 }
}

// NewWorker gives a goroutine its part.
func (im *Importer) NewWorker() (*ImportWorker, error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.over {
		return nil, errImportOver
	}
	ss, err := im.newSession()
	if err != nil {
		return nil, err
	}
	w := &ImportWorker{ss: ss, owns: im.owns}
	im.workers = append(im.workers, w)
	return w, nil
}

// Import takes entries as they lie one after the other in a segment, from any
// entry on. What is not made of whole entries is refused; their sums are not looked
// at here. Seals, headers and what belongs to no place are passed over. It waits for memory and for cold records
// as need be, and keeps nothing of entries.
func (w *ImportWorker) Import(ctx context.Context, entries []byte) error {
	if w.live != nil {
		return w.ImportKnown(ctx, entries, nil)
	}
	return w.importAll(ctx, entries)
}

func (w *ImportWorker) importAll(ctx context.Context, entries []byte) error {
	for entries = aligned(entries); len(entries) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.ss.Begin()
		rest := w.some(entries)
		w.ss.Seal()
		w.ss.End()
		if err := w.slowly(ctx); err != nil {
			return err
		}
		entries = rest
	}
	return nil
}

// Abort gives an import up. What was taken stays, and must not be shown.
func (im *Importer) Abort() {
	im.end()
	im.leaveSides()
	if im.foreign {
		im.st.noteBrought() // The copy may be this store's by now. What else was given up is imported again.
	}
}

// end lets the store forget the import.
func (im *Importer) end() {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.over {
		return
	}
	im.over = true
	im.st.imports.remove(im)
	for _, w := range im.workers {
		w.ss.Close()
	}
}

// Stats tells how far it has come.
func (im *Importer) Stats() (sum ImportStats) {
	im.mu.Lock()
	defer im.mu.Unlock()
	for _, w := range im.workers {
		sum.add(w.count())
	}
	return sum
}

// count tells what a worker has done.
func (w *ImportWorker) count() ImportStats {
	return ImportStats{w.stats.entries.Load(), w.stats.taken.Load(), w.stats.bytes.Load(), w.stats.tombstones.Load()}
}

func (s *ImportStats) add(o ImportStats) {
	s.Entries += o.Entries
	s.Taken += o.Taken
	s.Bytes += o.Bytes
	s.Tombstones += o.Tombstones
}

// imports are the importers that are at work. Others look there after they have
// seen a record: as an importer is listed before it shows its first one, who has
// seen one of its records finds it.
type imports struct {
	mu   sync.Mutex
	open atomic.Pointer[[]*Importer] // nil if there are none
	none chan struct{}               // closed when there are none any more but foreign ones; nil if nobody waits
}

func (is *imports) add(im *Importer) {
	is.change(func(all []*Importer) []*Importer { return append(all, im) })
}

func (is *imports) remove(im *Importer) {
	is.change(func(all []*Importer) []*Importer {
		return slices.DeleteFunc(all, func(o *Importer) bool { return o == im })
	})
}

func (is *imports) change(f func([]*Importer) []*Importer) {
	is.mu.Lock()
	defer is.mu.Unlock()
	var all []*Importer
	if old := is.open.Load(); old != nil {
		all = slices.Clone(*old)
	}
	if all = f(all); len(all) == 0 {
		is.open.Store(nil)
	} else {
		is.open.Store(&all)
	}
	if is.none != nil && !is.own() {
		close(is.none)
		is.none = nil
	}
}

// own tells whether something is imported that is not another store's. Clients may wait for that; what is another's is
// served there, and may be copied for hours.
func (is *imports) own() bool {
	all := is.open.Load()
	return all != nil && slices.ContainsFunc(*all, func(im *Importer) bool { return !im.foreign })
}

// wait waits until no import goes on but of what another store owns.
func (is *imports) wait(ctx context.Context) error {
	is.mu.Lock()
	if !is.own() {
		is.mu.Unlock()
		return nil
	}
	if is.none == nil {
		is.none = make(chan struct{})
	}
	none := is.none
	is.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// any tells whether an import goes on.
func (is *imports) any() bool { return is.open.Load() != nil }

// noteRemoval is called before a record of k, of version ver, is removed by whoever, by
// a deletion of version as: importers must not bring older ones back. If it is not removed
// in the end, no harm is done.
func (st *Store) noteRemoval(k *Key, ver, as uint64) {
	if st.arriving.any() {
		st.arriving.settle(k, as)
	}
	all := st.imports.open.Load()
	if all == nil {
		return
	}
	for _, im := range *all {
		if !im.foreign && im.owns(k.Place) {
			im.mu.Lock()
			im.late.add(k.Table, ver, k.Bytes)
			im.mu.Unlock()
		}
	}
}
