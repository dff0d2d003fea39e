package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

const (
	tablesMeta = "tables.json"
	// chunkTable holds the pieces of large values.
	chunkTable record.TableID = 1<<32 - 1
)

// table is one life of a numbered database. Truncating a database gives it a
// new table and leaves the old one's records to the cleaner.
type table struct {
	id     record.TableID
	secret uint64       // see record.Secret8
	counts []tableCount // one per session number, so that no two cores share a line
}

// tableCount is one session's share of a table's counts; only sums mean anything.
type tableCount struct {
	keys, expires atomic.Int64
	_             [48]byte
}

func newTable(id record.TableID, shares int) *table {
	return &table{id: id, secret: record.Secret8(id), counts: make([]tableCount, shares)}
}

// count notes a change of the number of keys and of keys with an expiry.
func (t *table) count(share, keys, expires int) {
	c := &t.counts[share%len(t.counts)]
	if keys != 0 {
		c.keys.Add(int64(keys))
	}
	if expires != 0 {
		c.expires.Add(int64(expires))
	}
}

func (t *table) sum() (keys, expires int64) {
	for i := range t.counts {
		keys += t.counts[i].keys.Load()
		expires += t.counts[i].expires.Load()
	}
	return max(keys, 0), max(expires, 0)
}

// tables maps databases to their tables. A table that no database has is dead,
// and so are its records.
type tables struct {
	mu     sync.Mutex
	shares int
	next   record.TableID
	byDB   []atomic.Pointer[table]

	completions *table // results of operations; see OpID
	live        atomic.Pointer[map[record.TableID]*table]
}

// tablesFile is how the map is kept.
type tablesFile struct {
	Next record.TableID   `json:"next"`
	DB   []record.TableID `json:"databases"`
}

func (ts *tables) of(db int) *table { return ts.byDB[db].Load() }

// byID finds a live table; nil if it is dead.
func (ts *tables) byID(id record.TableID) *table { return (*ts.live.Load())[id] }

// init begins with a fresh table per database.
func (ts *tables) init(databases, shares int) {
	ts.shares = shares
	ts.byDB = make([]atomic.Pointer[table], databases)
	for db := range ts.byDB {
		ts.byDB[db].Store(newTable(record.TableID(db), shares))
	}
	ts.next = record.TableID(databases)
	ts.completions = newTable(completionTable, shares)
	ts.relist()
}

// relist rebuilds the set of live tables: those of all databases, and more.
// The caller holds mu, or is alone.
func (ts *tables) relist(more ...*table) {
	live := make(map[record.TableID]*table, len(ts.byDB)+1)
	live[completionTable] = ts.completions
	for _, t := range append(ts.current(), more...) {
		live[t.id] = t
	}
	ts.live.Store(&live)
}

func (ts *tables) current() []*table {
	all := make([]*table, len(ts.byDB))
	for db := range all {
		all[db] = ts.byDB[db].Load()
	}
	return all
}

// change lets f edit the map, saves it, and only then shows it: a record of a
// table that the saved map does not have would be lost in a crash, though its
// write was acknowledged. For the same reason a table is alive before anybody
// can write to it, or the cleaner would take its records for dead.
func (ts *tables) change(save func(tablesFile) error, f func(byDB []*table)) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	next := ts.current()
	f(next)
	if err := save(ts.file(next)); err != nil {
		return err
	}
	ts.relist(next...)
	for db, t := range next {
		ts.byDB[db].Store(t)
	}
	ts.relist()
	return nil
}

// fresh makes an empty table. The caller holds mu, or is alone.
func (ts *tables) fresh() *table {
	ts.next++
	return newTable(ts.next-1, ts.shares)
}

func (ts *tables) file(byDB []*table) tablesFile {
	f := tablesFile{Next: ts.next}
	for _, t := range byDB {
		f.DB = append(f.DB, t.id)
	}
	return f
}

// load takes the map of a former life. Databases beyond those kept are fresh:
// the tables that they would begin with may have been others' since.
func (ts *tables) load(f tablesFile) {
	ts.next = max(f.Next, ts.next)
	for db := range ts.byDB {
		if db < len(f.DB) {
			ts.byDB[db].Store(newTable(f.DB[db], ts.shares))
		} else {
			ts.byDB[db].Store(ts.fresh())
		}
	}
	ts.relist()
}

func (st *Store) loadTables() error {
	if st.dev == nil {
		return nil
	}
	b, err := st.dev.ReadMeta(tablesMeta)
	if errors.Is(err, fs.ErrNotExist) {
		return st.saveTables(st.tables.file(st.tables.current())) // How many there are counts from now on.
	}
	if err != nil {
		return err
	}
	var f tablesFile
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("%s is damaged (%w): restore it from a backup of the data directory", tablesMeta, err)
	}
	if len(f.DB) > st.opts.Databases {
		return fmt.Errorf("the data directory has %d databases: set databases to at least that", len(f.DB))
	}
	st.tables.load(f)
	if len(f.DB) < st.opts.Databases {
		return st.saveTables(st.tables.file(st.tables.current()))
	}
	return nil
}

func (st *Store) saveTables(f tablesFile) error {
	if st.dev == nil {
		return nil
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return st.dev.WriteMeta(tablesMeta, b)
}

func (st *Store) dropTables(f func(byDB []*table)) error {
	if err := st.changeTables(f); err != nil {
		return err
	}
	st.sweep.ask()
	return nil
}

// changeTables changes the map of databases, after all that was written before:
// the map is in its file at once, and no crash may keep it without that.
func (st *Store) changeTables(f func(byDB []*table)) error {
	st.log.SealAll()
	if err := st.log.Sync(); err != nil {
		return err
	}
	return st.tables.change(st.saveTables, f)
}

// Swap exchanges the contents of two databases.
func (st *Store) Swap(a, b int) error {
	if st.opts.Cluster {
		return errClusterSwap
	}
	return st.changeTables(func(byDB []*table) { byDB[a], byDB[b] = byDB[b], byDB[a] })
}

// Count tells how many keys a database has, and how many of them expire.
// Expired keys count until they are cleaned away.
func (st *Store) Count(db int) (keys, expires int64) { return st.tables.of(db).sum() }
