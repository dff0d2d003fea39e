// Package hlog is the log of one node: segments of records, their heads, and
// where their bytes are at the moment.
//
//	open head(s)  ->  closed, in memory  ->  on disk only  ->  in the blob tier
//	appended to       read in place          one read a get     one range read a get
//
// A log is one of two kinds. A *logged* one is append-only; its heads are
// shared mappings of their files, so that what is sealed survives the death of
// the process without a system call, and Sync makes it survive loss of power. A
// *volatile* one keeps its records in plain memory, updates them in place while
// their segment is mutable, and gives them checksums when it freezes.
//
// Invariants:
//   - An address is dereferenced only under an epoch guard, and only after its
//     slot's base was loaded under that guard. Memory is given back, and a slot is
//     used again, only after all guards of the time have passed.
//   - Bytes of a frozen segment never change.
//   - A segment's file is removed only after everything live in it was
//     relocated, and the relocated copies are as durable as the originals were.
//   - What survives a loss of power is all batches up to some number, and none
//     beyond: no batch is kept without those that it builds on. See Resume. Side
//     segments are outside of that order; see Side.
package hlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/record"
)

// Options say how a log is kept.
type Options struct {
	// Device keeps segment files; nil keeps the log in memory only.
	Device device.Device
	LogID  record.LogID
	// SegmentBytes is the size of a segment, a power of two, 8 MiB at most.
	SegmentBytes int
	// Heads is how many heads serve sessions. One more serves the cleaner.
	Heads int
	// Logged makes the log append-only with its heads in mapped files.
	Logged bool
	// SyncEach lets nothing count as durable before a sync. Without it a logged
	// entry is durable once sealed, and a sync runs every second.
	SyncEach bool
	// Room asks for permission to take memory for one more segment, and waits
	// for others to make room only if it may: else it says ErrNoRoom. Any other
	// error refuses the write that asked.
	Room func(wait bool) error
	// Remote reads segments that only the blob tier holds.
	Remote func(id record.SegmentID, p []byte, off int64) (int, error)
	// Replicator, if set, keeps copies of a logged log elsewhere: nothing counts as
	// durable before it is copied. The log closes it.
	Replicator Replicator
	// Ready, if set, is called when a segment with room elsewhere became ready to be
	// appended to, and when none will any more.
	Ready func()
	// Busy, if set, tells whether settling and the adoption of side segments are to wait, for a while.
	Busy   func() bool
	Epoch  *epoch.Table
	Now    func() int64
	Logger *slog.Logger
}

var (
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("the log is closed")
	// ErrNoSegment says that the machine gives no segment to append to: its disk is full, or it has no memory. It is
	// said before anything is appended.
	ErrNoSegment = errors.New("no segment can be made")
	// ErrNoRoom says that an append has to wait for memory, or for room elsewhere.
	// Whoever holds a guard must give it up first, or the memory is never free.
	ErrNoRoom = errors.New("no room in memory at the moment")
)

// Log is a node's log.
type Log struct {
	opts  Options
	late  bool // what is sealed is not durable yet
	slots *slotTable
	pool  framePool

	mu       sync.Mutex
	segments map[record.SegmentID]*Segment
	bySlot   map[uint32]*Segment
	freeSlot []uint32
	nextSlot uint32
	nextID   record.SegmentID
	seenNext atomic.Uint64 // nextID, for those without the mutex

	heads    []*Head
	survivor *Head
	spares   chan *Segment
	reserve  chan *Segment // for what must be written to make room, if opening a segment takes an answer
	shortage shortage
	unused   unused
	ids      segmentIDs
	copies   copies
	sides    sides
	loads    loads
	ctx      context.Context // ends with the log
	cancel   context.CancelFunc
	settle   chan *Segment
	syncAsk  chan struct{}
	stop     chan struct{}
	chores   chores
	workers  sync.WaitGroup
	closing  atomic.Bool

	notifyMu sync.Mutex
	notify   []*func()
	waiters  atomic.Int64

	resident atomic.Int64 // segments that hold memory, frames and mappings
	order    order
	syncMu   sync.Mutex
	synced   atomic.Uint64 // a BatchID; see Synced
	vouch    voucher
	syncs    atomic.Int64
	syncErr  atomic.Pointer[error]
	failed   atomic.Pointer[failure]
}

// Open makes a log whose new segments have ids from first on. Recovered
// segments are handed in by Adopt before the first append.
func Open(o Options, first record.SegmentID) (*Log, error) {
	if o.SegmentBytes < 4096 || o.SegmentBytes > record.MaxSegmentBytes || o.SegmentBytes&(o.SegmentBytes-1) != 0 {
		return nil, fmt.Errorf("segment size %d: use a power of two from 4096 to %d bytes", o.SegmentBytes, record.MaxSegmentBytes)
	}
	if o.Replicator != nil && !o.Logged {
		return nil, errors.New("only a log with every write in a file can be copied: use durability everysec or always")
	}
	slots, err := newSlotTable()
	if err != nil {
		return nil, err
	}
	l := &Log{
		opts:     o,
		late:     o.SyncEach || o.Replicator != nil,
		slots:    slots,
		pool:     framePool{bytes: o.SegmentBytes},
		segments: map[record.SegmentID]*Segment{},
		bySlot:   map[uint32]*Segment{},
		nextSlot: 1,
		spares:   make(chan *Segment, spareSegments(&o)),
		reserve:  make(chan *Segment, reserveSegments),
		settle:   make(chan *Segment, 4096),
		syncAsk:  make(chan struct{}, 1),
		stop:     make(chan struct{}),
		chores:   chores{wake: make(chan struct{}, 1)},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.sides.begin()
	l.setNext(max(first, 1))
	for n := range o.Heads {
		h, err := newHead(l, n)
		if err != nil {
			return nil, err
		}
		l.heads = append(l.heads, h)
	}
	l.survivor, err = newHead(l, o.Heads)
	return l, err
}

// Start begins the background work: spare segments, settling, syncing.
func (l *Log) Start() {
	l.spawnSpares()
	l.spawn(l.choreLoop)
	l.spawn(l.settleLoop)
	if l.opts.Replicator != nil {
		l.spawn(l.adoptLoop)
	}
	if l.opts.Logged {
		l.spawn(l.syncLoop)
	}
}

func (l *Log) spawn(f func()) {
	l.workers.Add(1)
	go func() {
		defer l.workers.Done()
		f()
	}()
}

// Head gives the head of session number n; sessions share heads round robin.
func (l *Log) Head(n int) *Head { return l.heads[n%len(l.heads)] }

// Survivor is the cleaner's head.
func (l *Log) Survivor() *Head { return l.survivor }

// allHeads lists the sessions' heads and the cleaner's.
func (l *Log) allHeads() []*Head {
	return append(append(make([]*Head, 0, len(l.heads)+1), l.heads...), l.survivor)
}

// everyHead lists those of sides, too.
func (l *Log) everyHead() []*Head {
	l.sides.mu.Lock()
	defer l.sides.mu.Unlock()
	return append(l.allHeads(), l.sides.heads()...)
}

// SegmentBytes is the size of a segment.
func (l *Log) SegmentBytes() int { return l.opts.SegmentBytes }

// Logged tells whether the log is append-only and recoverable entry by entry.
func (l *Log) Logged() bool { return l.opts.Logged }

// MaxEntry is the largest entry that a segment takes beside its header.
func (l *Log) MaxEntry() int { return l.limit() - record.SegmentHeaderBytes }

// limit is where the entries of a segment end at the latest. The seal of the
// last batch and the closing seal must fit behind it, and something must be
// left for the file to be cut: by its size recovery knows that it was synced.
func (l *Log) limit() int { return l.opts.SegmentBytes - 2*record.SealBytes - 8 }

// Resident tells how many segments hold memory.
func (l *Log) Resident() int64 { return l.resident.Load() }

// Syncs counts finished syncs.
func (l *Log) Syncs() int64 { return l.syncs.Load() }

// NextID is the id that the next new segment gets: entries written so far lie
// in segments below it.
func (l *Log) NextID() record.SegmentID { return record.SegmentID(l.seenNext.Load()) }

// SkipTo lets new segments have ids from id on, at least.
func (l *Log) SkipTo(id record.SegmentID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setNext(max(l.nextID, id))
}

// setNext moves the next id. The caller holds l.mu, or is alone.
func (l *Log) setNext(id record.SegmentID) {
	l.nextID = id
	l.seenNext.Store(uint64(id))
}

// Close seals what is open, makes it durable and ends the background work, the
// replicator's last: it may use the log's memory until then.
func (l *Log) Close() error {
	if l.closing.Swap(true) {
		return nil
	}
	for _, h := range l.everyHead() {
		h.Rotate()
	}
	l.awaitCopies()
	close(l.stop)
	l.cancel()
	l.workers.Wait()
	err := errors.Join(l.finish(), l.closeReplicator())
	for l.opts.Epoch.Drain()+l.chores.run() > 0 {
	}
	l.release()
	return err
}

// finish syncs what a logged log still has open, and drops unused spares.
func (l *Log) finish() error {
	var errs []error
	if l.opts.Logged {
		errs = append(errs, l.syncHeads())
		if err := l.syncSides(); err != nil && l.opts.Replicator == nil {
			errs = append(errs, err) // Else they are no part of the log yet, and safe elsewhere.
		}
	}
	return errors.Join(append(errs, l.discardSpares())...)
}

// release gives all memory and files back. Nobody uses the log any more.
func (l *Log) release() {
	for _, s := range l.Segments() {
		l.closeFile(s)
	}
	for _, h := range l.allHeads() {
		h.dead.close()
	}
	l.pool.close()
	l.slots.close()
}

// pause waits a moment of background work, or tells that the log is closing.
func (l *Log) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.stop:
		return false
	case <-t.C:
		return true
	}
}
