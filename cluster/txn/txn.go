// Package txn is HyperLoop's replicated transactions, on the memories of a group:
//
//	Append               a redo record goes into the log of every replica
//	ExecuteAndAdvance    every replica's NIC copies it from its log to its data
//	WrLock, WrUnlock     exclusive, on all replicas
//	RdLock, RdUnlock     shared, on one replica
//
// and on those Update and View, transactions for many goroutines at once. No
// replica's processor takes part. One client at a time has a group; the group
// sees to that, and Initialize brings the replicas to one state whatever the
// client before has left.
//
// Invariants:
//   - A record is in the log of every replica, on its medium, when its Append has
//     ended. Only then is it executed: data has acknowledged transactions only.
//   - Records lie at positions that only grow and are executed in that order. Each
//     replica's memory is what a prefix of the client's operations makes of it.
//   - Room in the log is used again when all replicas have advanced past it, so
//     any of them can bring any other up to date.
//   - Executing again what was executed changes nothing in the end.
package txn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/cluster/group"
)

// Errors that callers decide on.
var (
	// ErrRefused says that a call makes no sense for this memory; nothing was done.
	ErrRefused = errors.New("txn: refused")
	// ErrTooLarge says that a record can never fit into the log.
	ErrTooLarge = errors.New("txn: record is larger than the log")
	// ErrForeign says that a replica's memory has something else in it.
	ErrForeign = errors.New("txn: not the memory of this group")
	// ErrDiverged says that replicas were used apart from each other.
	ErrDiverged = errors.New("txn: replicas went separate ways")
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("txn: closed")
	// ErrNotHeld says that a lock is not held by whom it shall be released for.
	ErrNotHeld = errors.New("txn: lock not held")
)

// Config is what the memory of a group is made for, and how it is used.
type Config struct {
	LogBytes uint64 // of the ring; default a quarter of the memory, at most 16 MiB
	Locks    int    // default 64 for small memories, else 1024

	// Batch is how many records are executed at once, at most; 64 if it is none.
	Batch int
	// Background executes records as they come, off the critical path. Without it,
	// Update executes its own, and Append the oldest when it needs room.
	Background bool

	// Progress is told how far the copying to empty or stale replicas is, if there
	// are any, while Initialize runs.
	Progress func(done, total uint64)
}

// Log is the client's end. Its methods may be called by many goroutines at once.
type Log struct {
	layout layout
	conf   Config
	epoch  uint64

	ctx    context.Context // over when the log is closed
	cancel context.CancelFunc
	group  *group.Group

	appending mutex  // one at a time is put into the log: issue order is position order
	executing mutex  // one at a time executes
	changed   *pages // where it marks what it executes, if somebody wants that

	mu     sync.Mutex
	tail   uint64        // where the next record goes
	head   uint64        // where the oldest record lies that not all replicas have executed
	queue  []*Pending    // appended and not executed, oldest first
	moved  chan struct{} // closed when the head has, and then another
	work   chan struct{} // for the background executor
	err    error
	failed chan struct{} // closed with an error after which locks may be held for good
	over   bool          // it is
	closed bool
	runs   sync.WaitGroup // goroutines that Close waits for

	writers writers
	lastID  atomic.Uint32 // owners given out
}

func newLog(g *group.Group, l layout, c Config, epoch, at uint64) *Log {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Log{
		layout: l, conf: c, epoch: epoch, ctx: ctx, cancel: cancel, group: g,
		tail: at, head: at, moved: make(chan struct{}), work: make(chan struct{}, 1), failed: make(chan struct{}),
		appending: newMutex(), executing: newMutex(), writers: newWriters(),
	}
	if c.Background {
		t.runs.Add(1)
		go t.background()
	}
	return t
}

// Close ends the use of the log; the group stays the caller's. What was
// appended and not executed is executed when the group is initialized again.
// When Close returns, the log changes neither logs nor data any more.
func (l *Log) Close() error {
	l.fail(ErrClosed)
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.runs.Wait()
	return nil
}

// enter is for who is about to change logs or data: Close waits until he says
// runs.Done, which comes soon once the log's ctx is over.
func (l *Log) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.err
	}
	l.runs.Add(1)
	return nil
}

// Group is what the log lies on.
func (l *Log) Group() *group.Group { return l.group }

// DataBytes is the size of the data area. Offsets of entries and reads count from its start.
func (l *Log) DataBytes() uint64 { return l.layout.dataBytes() }

// DataOffset is where in each replica's memory the data area begins, a multiple of 4096.
func (l *Log) DataOffset() uint64 { return l.layout.data() }

// Locks is how many there are.
func (l *Log) Locks() int { return l.layout.locks }

// Unexecuted is how many records are in the log, and their bytes.
func (l *Log) Unexecuted() (records int, bytes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.tail - l.head
}

// Err tells why the log takes no more, or nothing while it does.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	return l.group.Err()
}

// fail makes every later call end with the first error that came.
func (l *Log) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	if !l.over && !errors.Is(err, ErrMoved) {
		l.over = true
		close(l.failed)
	}
	l.wake()
}

// hopeless tells who waits for a lock whether it may never be released, and why.
func (l *Log) hopeless() error {
	select {
	case <-l.failed:
	case <-l.group.Broken():
	default:
		return nil
	}
	return l.Err()
}

// wake tells all who wait for the log to move. The caller has mu.
func (l *Log) wake() {
	close(l.moved)
	l.moved = make(chan struct{})
}
