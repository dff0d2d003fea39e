package store

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// chunkTable holds the pieces of large values.
const chunkTable record.TableID = 1<<32 - 1

// table is one life of a numbered database. Truncating a database gives it a
// new table and leaves the old one's records to the cleaner.
type table struct {
	id     record.TableID
	secret uint64       // see record.Secret8
	counts []tableCount // one per session number, so that no two cores share a line
}

// tableCount is one session's share of a table's counts; only sums mean anything.
type tableCount struct {
	keys, expires, bytes atomic.Int64
	_                    [40]byte
}

func newTable(id record.TableID, shares int) *table {
	return &table{id: id, secret: record.Secret8(id), counts: make([]tableCount, shares)}
}

// worth is what a table's counts say of records: how many keys there are, how many of
// them expire, and the bytes that all take in the log.
type worth struct{ keys, expires, bytes int }

func (w worth) minus(o worth) worth {
	return worth{w.keys - o.keys, w.expires - o.expires, w.bytes - o.bytes}
}

// worthOf is what a record counts; a tombstone, or none, counts nothing.
func worthOf(p record.Ptr) worth {
	if p.IsNil() || !isRecord(p) {
		return worth{}
	}
	w := worth{1, b2i(p.HasExpiry()), p.Length()}
	if p.Chunked() {
		w.bytes += chunkedBytes(p.Value())
	}
	return w
}

// worth is what the record will count once it is k's.
func (e *entry) worth(k *Key) worth {
	w := worth{1, b2i(e.ExpireAt != 0), e.size(k)}
	if e.Chunked {
		w.bytes += chunkedBytes(e.value)
	}
	return w
}

// count notes a change.
func (t *table) count(share int, w worth) {
	c := &t.counts[share%len(t.counts)]
	if w.keys != 0 {
		c.keys.Add(int64(w.keys))
	}
	if w.expires != 0 {
		c.expires.Add(int64(w.expires))
	}
	if w.bytes != 0 {
		c.bytes.Add(int64(w.bytes))
	}
}

func (t *table) sum() (keys, expires int64) {
	for i := range t.counts {
		keys += t.counts[i].keys.Load()
		expires += t.counts[i].expires.Load()
	}
	return max(keys, 0), max(expires, 0)
}

func (t *table) bytes() (n int64) {
	for i := range t.counts {
		n += t.counts[i].bytes.Load()
	}
	return max(n, 0)
}

// tables maps databases to their tables. A table that no database has is dead,
// and so are its records.
type tables struct {
	mu      sync.Mutex
	shares  int
	next    record.TableID
	byDB    []atomic.Pointer[table]
	private private
	shared  bool // tables have their databases' numbers, as on all nodes of the cluster

	completions *table // results of operations; see OpID
	live        atomic.Pointer[map[record.TableID]*table]
}

func (ts *tables) of(db int) *table {
	if db < len(ts.byDB) {
		return ts.byDB[db].Load()
	}
	return ts.private.of(db)
}

// byID finds a live table; nil if it is dead.
func (ts *tables) byID(id record.TableID) *table {
	if t := (*ts.live.Load())[id]; t != nil {
		return t
	}
	return ts.unheard(id)
}

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
	for _, t := range more {
		live[t.id] = t
	}
	for t := range ts.all() {
		live[t.id] = t
	}
	ts.live.Store(&live)
}

// all goes through the tables of all databases.
func (ts *tables) all() iter.Seq[*table] {
	return func(yield func(*table) bool) {
		for db := range ts.byDB {
			if !yield(ts.byDB[db].Load()) {
				return
			}
		}
		for _, t := range ts.private.open() {
			if !yield(t) {
				return
			}
		}
	}
}

// databases is what all databases have for tables.
type databases struct {
	numbered []*table
	private  map[int]*table
}

func (ts *tables) current() databases {
	all := databases{make([]*table, len(ts.byDB)), ts.private.open()}
	for db := range all.numbered {
		all.numbered[db] = ts.byDB[db].Load()
	}
	return all
}

// set gives a database another table.
func (d *databases) set(db int, t *table) {
	if db < len(d.numbered) {
		d.numbered[db] = t
	} else {
		d.private[db] = t
	}
}

func (d *databases) tables() []*table {
	return slices.AppendSeq(slices.Clone(d.numbered), maps.Values(d.private))
}

// change lets f edit the map, saves it, and only then shows it: a record of a
// table that the saved map does not have would be lost in a crash, though its
// write was acknowledged. For the same reason a table is alive before anybody
// can write to it, or the cleaner would take its records for dead.
func (ts *tables) change(save func(TablesFile) error, f func(*databases)) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	next := ts.current()
	f(&next)
	if err := save(ts.file(next)); err != nil {
		return err
	}
	ts.relist(next.tables()...)
	for db, t := range next.numbered {
		ts.byDB[db].Store(t)
	}
	ts.private.become(next.private)
	ts.relist()
	return nil
}

// fresh makes an empty table. The caller holds mu, or is alone.
func (ts *tables) fresh() *table {
	ts.next++
	return newTable(ts.next-1, ts.shares)
}

func (ts *tables) file(d databases) TablesFile {
	f := TablesFile{Next: ts.next, Private: map[int]record.TableID{}}
	for _, t := range d.numbered {
		f.DB = append(f.DB, t.id)
	}
	for db, t := range d.private {
		f.Private[db] = t.id
	}
	return f
}

// load takes the map of a former life. Databases beyond those kept are fresh:
// the tables that they would begin with may have been others' since. Not so on
// a node of a cluster, which makes none: they have their own there, as everywhere.
func (ts *tables) load(f TablesFile) {
	ts.next = max(f.Next, ts.next)
	for db := range ts.byDB {
		switch {
		case db < len(f.DB):
			ts.byDB[db].Store(newTable(f.DB[db], ts.shares))
		case !ts.shared || record.TableID(db) < f.Next:
			ts.byDB[db].Store(ts.fresh())
		}
	}
	private := map[int]*table{}
	for db, id := range f.Private {
		private[db] = newTable(id, ts.shares)
	}
	ts.private.become(private)
	ts.relist()
}

func (st *Store) loadTables() error {
	if st.dev == nil {
		return nil
	}
	f, found, err := ReadTables(st.dev)
	switch {
	case err != nil:
		return err
	case !found:
		return st.saveTables(st.tables.file(st.tables.current())) // How many there are counts from now on.
	case len(f.DB) > st.opts.Databases:
		return fmt.Errorf("the data directory has %d databases: set databases to at least that", len(f.DB))
	}
	st.tables.load(f)
	if len(f.DB) < st.opts.Databases {
		return st.saveTables(st.tables.file(st.tables.current()))
	}
	return nil
}

func (st *Store) saveTables(f TablesFile) error {
	if st.dev == nil {
		return nil
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return st.dev.WriteMeta(TablesMeta, b)
}

func (st *Store) dropTables(f func(*databases)) error {
	if err := st.changeTables(f); err != nil {
		return err
	}
	st.sweep.ask()
	return nil
}

// changeTables changes the map of databases, after all that was written before:
// the map is in its file at once, and no crash may keep it without that.
func (st *Store) changeTables(f func(*databases)) error {
	if !st.admit() {
		return ErrClosed // The directory may be another store's by now.
	}
	defer st.workers.Done()
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
	return st.changeTables(func(d *databases) {
		first, second := st.tables.of(a), st.tables.of(b)
		d.set(a, second)
		d.set(b, first)
	})
}

// Count tells how many keys a database has, and how many of them expire.
// Expired keys count until they are cleaned away.
func (st *Store) Count(db int) (keys, expires int64) { return st.tables.of(db).sum() }

// Empty tells whether a database has no keys and nothing is on its way to this store.
func (st *Store) Empty(db int) bool {
	if st.arriving.any() {
		return false
	}
	keys, _ := st.Count(db)
	return keys == 0
}

// Bytes is what the records of a database take in the log, but for what is to be cleaned
// away.
func (st *Store) Bytes(db int) int64 { return st.tables.of(db).bytes() }

// lastTable remembers the table of the last record, for those who look at many: nearly always it is the next one's.
type lastTable struct {
	of *map[record.TableID]*table // when it was looked up
	id record.TableID
	t  *table
}

// find is byID.
func (l *lastTable) find(ts *tables, id record.TableID) *table {
	if now := ts.live.Load(); l.t == nil || l.id != id || l.of != now {
		*l = lastTable{now, id, ts.byID(id)}
	}
	return l.t
}
