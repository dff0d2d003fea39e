package store

import (
	"fmt"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// TablesMeta is the metadata that says which table each database has.
const TablesMeta = "tables.json"

// TablesFile is its content. Records of tables that it does not have are dead.
type TablesFile struct {
	Next    record.TableID         `json:"next"` // no table of this store has this id or a higher one
	DB      []record.TableID       `json:"databases"`
	Private map[int]record.TableID `json:"private,omitempty"`
}

// ReadTables reads the map; false if there is none, which means that database n
// has table n.
func ReadTables(r device.MetaReader) (f TablesFile, found bool, err error) {
	if found, err = device.ReadJSON(r, TablesMeta, &f); err != nil {
		return f, false, err
	}
	for db := range f.Private {
		if !isPrivate(db) {
			return f, false, fmt.Errorf("%s is damaged (%d is no number of a private database): restore it from a copy of the data directory", TablesMeta, db)
		}
	}
	return f, found, nil
}

// Owners gives a function that tells which database has a table; false if none
// does, so that its records are dead.
func (f *TablesFile) Owners() func(record.TableID) (db int, alive bool) {
	owners := make(map[record.TableID]int, len(f.DB)+len(f.Private))
	for db, id := range f.DB {
		owners[id] = db
	}
	for db, id := range f.Private {
		owners[id] = db
	}
	return func(id record.TableID) (int, bool) {
		if db, has := owners[id]; has {
			return db, true
		}
		// A node of a cluster makes no tables of its own: there a private database has
		// its number, whether the node has heard of it or not.
		return int(id), id >= f.Next && isPrivate(int(id))
	}
}

// Internal tells whether a table holds no keys of any database, but pieces of
// large values or results of operations.
func Internal(id record.TableID) bool { return id == chunkTable || id == completionTable }
