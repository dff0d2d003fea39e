package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/engine/record"
)

// Outside of a cluster truncating a database gives it another table, at once. In
// a cluster that would be lost on heirs: they see the log, not this node's map of
// tables. So there databases keep their tables, and truncating deletes key by key.
// Each deletion is a tombstone of the log like any other. It is not one moment: each
// key goes at some time between begin and end, and one that is written meanwhile
// may go or stay.

var errClusterSwap = errors.New("databases cannot be swapped in a cluster: their records would have to move")

// Truncate empties a database. Outside of a cluster that is done at once, and
// memory comes back in the background; in a cluster it takes time, see
// StartTruncate, and is not to be called between Begin and End.
func (st *Store) Truncate(db int) error {
	if st.opts.Cluster {
		return st.deleteNumbered(db, 0)
	}
	return st.dropTables(func(d *databases) { d.set(db, st.tables.fresh()) })
}

// TruncateAll is Truncate of all databases but private ones.
func (st *Store) TruncateAll() error {
	if st.opts.Cluster {
		return st.deleteNumbered(-1, 0)
	}
	below := st.log.OldestOpen()
	err := st.dropTables(func(d *databases) {
		for db := range d.numbered {
			d.numbered[db] = st.tables.fresh()
		}
	})
	if results, _ := st.tables.completions.sum(); err == nil && results == 0 && len(st.Private()) == 0 { // Else some may lie below.
		st.sweep.askBelow(below)
	}
	return err
}

// StartTruncate is Truncate of one database, or of all if db is negative, for those
// who must not wait. done is called once, from another goroutine, when the database
// is empty and that is durable. Until it is decided whose a place is that is returned or handed over it waits for so long at the most, if
// that is not 0: then it fails with ErrReturning or ErrDeparting, and some keys may have gone.
func (st *Store) StartTruncate(db int, most time.Duration, done func(error)) {
	if st.closing.Load() || !st.admit() {
		go done(ErrClosed)
		return
	}
	go func() {
		defer st.workers.Done()
		switch {
		case st.opts.Cluster:
			done(st.deleteNumbered(db, most))
		case db < 0:
			done(st.TruncateAll())
		default:
			done(st.Truncate(db))
		}
	}()
}

// checkClusterTables refuses a directory in which databases have other tables
// than on all other nodes.
func (st *Store) checkClusterTables() error {
	if !st.opts.Cluster {
		return nil
	}
	all := st.Private()
	for db := range st.tables.byDB {
		all = append(all, db)
	}
	for _, db := range all {
		if st.tables.of(db).id != record.TableID(db) {
			return fmt.Errorf("database %d of this data directory was emptied or swapped outside of a cluster: let the node begin with an empty directory", db)
		}
	}
	return nil
}

// deleteNumbered deletes all keys of a database, or of all but private ones if db is negative.
func (st *Store) deleteNumbered(db int, most time.Duration) error {
	if db < 0 {
		return st.deleteAll(context.Background(), 0, len(st.tables.byDB), most)
	}
	return st.deleteAll(context.Background(), db, db+1, most)
}

// deleteAll deletes all keys of the databases from first to below end, once no
// import is under way: what it brings would come after the deletion. See StartTruncate for most.
func (st *Store) deleteAll(ctx context.Context, first, end int, most time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(st.ctx, stop)()
	if err := st.imports.wait(ctx); err != nil {
		return ErrClosed
	}
	ss, err := st.NewSession()
	if err != nil {
		return err
	}
	defer ss.Close()
	for db := first; db < end; db++ {
		if err := ss.deleteDatabase(ctx, db, most); err != nil {
			return fmt.Errorf("database %d is not empty: %w", db, err)
		}
	}
	ticket := ss.Seal()
	return ss.waitDurable(ctx, ticket)
}

// deleteStep is how many keys are deleted inside one guard.
const deleteStep = 256

// deleteDatabase deletes all keys that a database has.
func (ss *Session) deleteDatabase(ctx context.Context, db int, most time.Duration) error {
	for cursor := uint64(0); ; {
		next, held, st := ss.deleteSome(db, cursor)
		switch {
		case st == Cold:
			if err := ss.fetchWithin(ctx, most); err != nil {
				return err
			}
		case st >= Refused:
			return ss.Err()
		case held != nil:
			if err := ss.st.departs.await(ctx, *held, most); err != nil {
				return err
			}
		case next == 0:
			return ctx.Err()
		default:
			cursor = next
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// deleteSome deletes the next keys from a cursor on; Cold asks to try again. So does held, the place of one that a copying store is
// about to be given.
func (ss *Session) deleteSome(db int, cursor uint64) (next uint64, held *record.Place, st Status) {
	ss.Begin()
	defer ss.End()
	// In the guard: what is given away later is deleted before. A departure that begins later withholds nothing
	// in this guard, and one that ends serves its places before.
	departs := ss.st.departs.list()
	serves := ss.st.opts.Serves()
	var keys [][]byte
	next, st = ss.Scan(db, cursor, deleteStep, func(key []byte, _ *View) { keys = append(keys, key) })
	if st != OK {
		return next, nil, st
	}
	for _, key := range keys {
		k := ss.Key(db, key)
		switch {
		case !serves(k.Place) && departing(departs, k.Place):
			held = &k.Place // It is about to be decided whose it is.
			continue
		case ss.st.imports.isForeign(k.Place) || !serves(k.Place):
			continue // Its owner has it deleted, if it is to be.
		}
		switch one := ss.Delete(&k, nil); {
		case one >= Refused:
			st = one
		case one == Cold && st == OK:
			st = Cold
		}
	}
	ss.head.Lock()
	ss.head.Seal()
	ss.head.Unlock()
	return next, held, st
}
