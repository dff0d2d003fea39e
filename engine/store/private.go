package store

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// Private databases have numbers that no SELECT reaches, from FirstPrivate on. They
// are made and dropped while the store serves, thousands of them if need be, and a
// number is never used twice.
//
// On a node of a cluster the table of such a database has the database's number, as
// with all others. A node may get records of one before it has heard of it (from a
// migration, or as an heir), so there every table of that kind counts as alive.
const (
	FirstPrivate = 1 << 16
	MaxPrivate   = 1 << 20 // how many there can ever be

	privateChunk = 256
)

// private holds the tables of private databases, where a hot path finds them by number.
type private struct {
	chunks [MaxPrivate / privateChunk]atomic.Pointer[[privateChunk]atomic.Pointer[table]]
	// now is which of them are open; dropped ones keep their dead table, for those who still use it.
	now atomic.Pointer[map[int]*table]
}

// of is the table of a database that is open, or was.
func (p *private) of(db int) *table {
	n := db - FirstPrivate
	return p.chunks[n/privateChunk].Load()[n%privateChunk].Load()
}

// known is the table that a database has or had; nil if there never was one.
func (p *private) known(db int) *table {
	n := db - FirstPrivate
	if chunk := p.chunks[n/privateChunk].Load(); chunk != nil {
		return chunk[n%privateChunk].Load()
	}
	return nil
}

// open is a copy of the map of those that are open.
func (p *private) open() map[int]*table {
	if m := p.now.Load(); m != nil {
		return maps.Clone(*m)
	}
	return map[int]*table{}
}

// become makes the given ones those that are open. The caller holds the tables' mu, or is alone.
func (p *private) become(next map[int]*table) {
	for db, t := range next {
		n := db - FirstPrivate
		chunk := p.chunks[n/privateChunk].Load()
		if chunk == nil {
			chunk = new([privateChunk]atomic.Pointer[table])
		}
		chunk[n%privateChunk].Store(t)
		p.chunks[n/privateChunk].Store(chunk)
	}
	p.now.Store(&next)
}

func isPrivate(db int) bool { return FirstPrivate <= db && db < FirstPrivate+MaxPrivate }

// unheard finds the table of a private database that this node of a cluster has not heard
// of. Outside of a cluster there is none: what the map does not have is dead.
func (ts *tables) unheard(id record.TableID) *table {
	if !ts.shared || !isPrivate(int(id)) {
		return nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := (*ts.live.Load())[id]; t != nil {
		return t
	}
	return ts.hear(int(id))[0]
}

// hear opens private databases of a cluster. One that was forgotten gets the table that it had: who found that before counts
// what it brings there. The caller holds mu.
func (ts *tables) hear(dbs ...int) (tables []*table) {
	next := ts.private.open()
	for _, db := range dbs {
		if next[db] == nil {
			next[db] = ts.private.known(db)
		}
		if next[db] == nil {
			next[db] = newTable(record.TableID(db), ts.shares)
		}
		tables = append(tables, next[db])
	}
	ts.private.become(next)
	ts.relist()
	return tables
}

// OpenPrivate makes those of some private databases that are not there.
func (st *Store) OpenPrivate(dbs ...int) error {
	var missing []int
	for _, db := range dbs {
		if !isPrivate(db) {
			return fmt.Errorf("%d is no number of a private database: they are %d to %d", db, FirstPrivate, FirstPrivate+MaxPrivate-1)
		}
		if !st.hasPrivate(db) {
			missing = append(missing, db)
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case st.opts.Cluster:
		st.tables.mu.Lock()
		defer st.tables.mu.Unlock()
		st.tables.hear(missing...)
		return nil
	}
	return st.changeTables(func(d *databases) {
		for _, db := range missing {
			d.private[db] = st.tables.fresh()
		}
	})
}

// DropPrivate empties a private database for good; see Truncate. In a cluster it deletes what this node serves, and the
// database stays open while there is more: it is to be dropped again whenever something was Brought.
func (st *Store) DropPrivate(ctx context.Context, db int) error {
	switch {
	case !st.hasPrivate(db):
		return nil
	case st.opts.Cluster:
		err := st.deleteAll(ctx, db, db+1, 0)
		if err == nil {
			st.tables.forget(db)
		}
		return err
	}
	return st.dropTables(func(d *databases) { delete(d.private, db) })
}

// forget takes a private database off the list, until something of it comes again; not if there is something.
func (ts *tables) forget(db int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if keys, _ := ts.private.of(db).sum(); keys > 0 {
		return
	}
	next := ts.private.open()
	delete(next, db)
	ts.private.become(next)
	ts.relist()
}

// Private lists the private databases that are open.
func (st *Store) Private() []int {
	var all []int
	for db := range st.tables.private.open() {
		all = append(all, db)
	}
	return all
}

func (st *Store) hasPrivate(db int) bool {
	m := st.tables.private.now.Load()
	return m != nil && (*m)[db] != nil
}

// Brought has one if an arrival or an import has ended since it was received from: of databases that were dropped there may
// be records again. It is for one receiver.
func (st *Store) Brought() <-chan struct{} { return st.brought }

// noteBrought tells who waits for Brought.
func (st *Store) noteBrought() {
	select {
	case st.brought <- struct{}{}:
	default:
	}
}
