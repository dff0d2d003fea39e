// Package ostrobbolt is bbolt, replicated by a group: the second case study of
// HyperLoop (there it is MongoDB's memory-mapped engine).
//
//	front end                          each replica
//	bbolt on a file in memory          log ── executed by its NIC ──▶ data area
//	      │ pages that a commit wrote   ▲                              │
//	      └── txn.Update ───────────────┘            Reader: a read-only bbolt, in place
//
// The data area of every replica is the database file itself, page for page.
// bbolt commits to the front end's copy; the pages it has written, and the meta
// page behind them, go into all replicas' logs as one transaction, and their
// NICs copy them from there into the files. Only then does Update return.
//
// Invariants:
//   - Update returns nil only when all replicas have the commit in their logs, on
//     their media. What View has read is in all of them, too, when it returns.
//   - A replica's file is always the database as of some commit, or will be when its
//     log is executed: a commit is one transaction, or, if the log is too small
//     for that, pages that no version refers to, and then one with the meta page.
//   - A Reader holds the database's lock for reading, and writers take it for
//     writing until all replicas have executed: it reads every commit that had
//     been acknowledged before, on any replica.
//   - The front end's copy is worth nothing without its process. Who opens the
//     database reads it from a replica.
package ostrobbolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/ostrodb/ostro/cluster/txn"
)

// Errors that callers decide on.
var (
	// ErrLost says that the front end has lost its replicas. Of the commit that it
	// happened in nobody knows until the database is opened again; those before
	// are there.
	ErrLost = errors.New("bbolt: the replicas are lost; open the database again")
	// ErrClosed says that the database was closed.
	ErrClosed = errors.New("bbolt: closed")
)

// Options say how a database is opened. The zero value is good.
type Options struct {
	PageBytes int // of a database that does not exist yet; default the system's
	Lock      int // the lock of the group that stands for the database
	Source    int // the replica that the database is read from; all have the same
}

// DB is the front end's end of a replicated database. Its methods may be called by many
// goroutines at once.
type DB struct {
	log   *txn.Log
	lock  int
	local *local
	bolt  *bbolt.DB

	ctx     context.Context // over when the database is closed, or its replicas lost
	cancel  context.CancelFunc
	watched sync.WaitGroup

	commits sync.Mutex // one commit at a time, until it is replicated
	tracker *tracker   // guarded by commits, as is
	most    int        // how much goes into one record

	mu         sync.Mutex
	replicated uint64        // the last transaction that all replicas have
	moved      chan struct{} // closed when replicated or err changes
	err        error
}

// Open opens the database in the data area of a group's replicas, or makes one
// if the area is blank. The log stays the caller's; give it Config.Background, or
// every commit waits until it is executed.
func Open(ctx context.Context, log *txn.Log, o Options) (*DB, error) {
	if o.PageBytes == 0 {
		o.PageBytes = os.Getpagesize()
	}
	image, err := load(ctx, log, o.Source)
	if err != nil {
		return nil, err
	}
	l, err := newLocal(int(log.DataBytes()), image)
	if err != nil {
		return nil, err
	}
	db := &DB{log: log, lock: o.Lock, local: l, most: mostBytes, moved: make(chan struct{})}
	db.ctx, db.cancel = context.WithCancel(context.Background())
	if err := db.start(o.PageBytes, image == nil); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// load reads a database from a replica; a blank data area has none.
func load(ctx context.Context, log *txn.Log, replica int) ([]byte, error) {
	head := make([]byte, min(firstPage, log.DataBytes()))
	if err := log.Read(ctx, replica, 0, head); err != nil {
		return nil, fmt.Errorf("bbolt: read the database from replica %d: %w", replica, err)
	}
	m, ok := parseMeta(head)
	switch {
	case !ok && blank(head):
		return nil, nil
	case !ok || m.bytes() > log.DataBytes():
		return nil, fmt.Errorf("bbolt: the data area of replica %d holds no bbolt database", replica)
	}
	// The other meta page may be newer, and tell of more pages.
	image := make([]byte, log.DataBytes())
	if err := log.Read(ctx, replica, 0, image[:2*m.pageBytes]); err != nil {
		return nil, fmt.Errorf("bbolt: read the database from replica %d: %w", replica, err)
	}
	m, err := readMeta(image, m.pageBytes)
	if err != nil || m.bytes() > log.DataBytes() {
		return nil, fmt.Errorf("bbolt: the data area of replica %d holds no bbolt database (%w)", replica, err)
	}
	image = image[:m.bytes()]
	return image, log.Read(ctx, replica, 0, image)
}

// firstPage is enough to find the first meta page.
const firstPage = 1024

func blank(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// start opens bbolt on the local copy, and brings a new database to the replicas.
func (db *DB) start(pageBytes int, fresh bool) (err error) {
	if !fresh {
		m, _ := parseMeta(db.local.bytes)
		pageBytes = int(m.pageBytes)
	}
	if db.bolt, err = db.local.open(pageBytes); err != nil {
		return err
	}
	if db.tracker, err = newTracker(db.local.bytes, uint64(pageBytes)); err != nil {
		return fmt.Errorf("bbolt: %w", err)
	}
	if fresh {
		err = db.log.Update(db.ctx, []int{db.lock}, func(tx *txn.Tx) error {
			tx.Write(0, db.local.bytes[:db.tracker.now.bytes()])
			return nil
		})
	}
	db.replicated = db.tracker.now.tx
	db.watched.Go(db.watch)
	return err
}

// watch ends whatever waits for the replicas when they are lost.
func (db *DB) watch() {
	select {
	case <-db.log.Group().Broken():
		db.fail(fmt.Errorf("%w: %w", ErrLost, db.log.Group().Err()))
		db.cancel()
	case <-db.ctx.Done():
	}
}

// Update runs fn in a transaction that may write, as bbolt's Update does, and
// returns when all replicas have it. OnCommit's functions run earlier: when
// the front end's own copy has it.
func (db *DB) Update(fn func(tx *bbolt.Tx) error) error {
	db.commits.Lock()
	defer db.commits.Unlock()
	if err := db.Err(); err != nil {
		return err
	}
	if err := db.bolt.Update(fn); err != nil {
		return err
	}
	err := db.replicate()
	if err != nil {
		db.fail(fmt.Errorf("%w: %w", ErrLost, err))
		return db.Err()
	}
	db.acknowledge(db.tracker.now.tx)
	return nil
}

// View runs fn in a transaction that reads the front end's copy, and returns
// when all replicas have what it has read.
func (db *DB) View(fn func(tx *bbolt.Tx) error) error {
	if err := db.Err(); err != nil {
		return err
	}
	var saw uint64
	if err := db.bolt.View(func(tx *bbolt.Tx) error {
		saw = uint64(tx.ID())
		return fn(tx)
	}); err != nil {
		return err
	}
	return db.wait(saw)
}

// wait returns when all replicas have a transaction.
func (db *DB) wait(tx uint64) error {
	for {
		db.mu.Lock()
		done, err, moved := db.replicated >= tx, db.err, db.moved
		db.mu.Unlock()
		if done || err != nil {
			return err
		}
		<-moved
	}
}

func (db *DB) acknowledge(tx uint64) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.replicated = tx
	db.wake()
}

// fail makes every later call end with the first error that came.
func (db *DB) fail(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.err == nil {
		db.err = err
		db.wake()
	}
}

// wake tells all who wait. The caller has mu.
func (db *DB) wake() {
	close(db.moved)
	db.moved = make(chan struct{})
}

// Err tells why the database takes no more, or nothing while it does.
func (db *DB) Err() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.err
}

// Close closes the front end's copy. It waits for transactions that are open;
// replicas keep the database.
func (db *DB) Close() error {
	db.fail(ErrClosed)
	var err error
	if db.bolt != nil {
		err = db.bolt.Close()
	}
	db.commits.Lock()
	defer db.commits.Unlock()
	db.cancel()
	db.watched.Wait()
	return errors.Join(err, db.local.close())
}
