package store

import (
	"context"
	"errors"

	"github.com/ostrodb/ostro/engine/record"
)

// Importer takes entries of other logs into a store: what recovery on an heir is
// made of. Any number of workers feed it, in any order, while the store serves
// keys of other places. When all is fed, Finish makes it whole:
//
//	NewImporter ── NewWorker ─┬─ Import, Import, ...  ── Finish
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
type Importer struct{}

// ImportOptions say what is imported.
type ImportOptions struct {
	// Owns tells whether a place is imported; entries of others are passed over. Nil takes all.
	Owns func(record.Place) bool
}

// ImportStats count what an importer has done.
type ImportStats struct {
	Entries    int64 // that were looked at
	Taken      int64 // that are in this store's log now
	Bytes      int64 // of those
	Tombstones int64 // that are remembered until Finish
}

var errNoImport = errors.New("not built yet")

// NewImporter begins an import.
func (st *Store) NewImporter(o ImportOptions) (*Importer, error) { return nil, errNoImport }

// ImportWorker is one goroutine's part of an import.
type ImportWorker struct{}

// NewWorker gives a goroutine its part.
func (im *Importer) NewWorker() (*ImportWorker, error) { return nil, errNoImport }

// Import takes entries as they lie one after the other in a segment, from any
// entry on. They are whole: record.Scan accepted them. Seals, headers and what
// belongs to no place are passed over. It waits for memory and for cold records
// as need be, and keeps nothing of entries.
func (w *ImportWorker) Import(ctx context.Context, entries []byte) error { return errNoImport }

// Finish ends an import after all workers have: large values become visible,
// what was deleted goes, and all of it is as durable as the store promises. After
// an error it may be called again.
func (im *Importer) Finish(ctx context.Context) error { return errNoImport }

// Abort gives an import up. What was taken stays, and must not be shown.
func (im *Importer) Abort() {}

// Stats tells how far it has come.
func (im *Importer) Stats() ImportStats { return ImportStats{} }
