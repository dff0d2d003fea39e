package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Store is the engine of one node.
type Store struct {
	opts   Options
	logged bool // opts.logged(), near at hand
	dev    device.Device
	unlock func()
	epoch  *epoch.Table
	ix     *index.Index
	log    *hlog.Log
	tier   tier

	tables   tables
	floors   *floors
	graves   *graves
	revisits *revisits
	chunkIDs atomic.Uint64
	imports  imports
	arriving arrivals
	departs  departures
	left     leftPlaces
	versions atomic.Uint64 // see Ceiling
	clients  clients
	limit    atomic.Int64 // memory, in bytes
	policy   atomic.Uint32

	readers  readers
	sessions atomic.Int64
	mu       sync.Mutex
	open     map[*Session]struct{}
	past     counters // of sessions that ended

	keeper   *Session // of the background
	sweep    sweeper
	doomed   doomed
	room     room
	turn     turn
	work     workCounts
	ctx      context.Context // ends with the store
	stop     context.CancelFunc
	done     <-chan struct{}
	leaving  chan struct{} // closed when it begins to close
	brought  chan struct{} // see Brought
	workers  sync.WaitGroup
	closing  atomic.Bool
	closed   atomic.Bool
	cooling  sync.Mutex // one freezes and flushes at a time
	cleaning sync.Mutex // no segment is half cleaned while it is free

	condemned map[*hlog.Segment]condemned // belongs to the holder of cleaning
	dropping  dropping                    // likewise
	sender    sender
	keep      atomic.Bool // nothing is dropped: see Keep
	tierAgain time.Time   // likewise: when the blob tier, which failed, is asked again
	buryTold  int64       // likewise: when it was last told that some could not be dropped, in Unix milliseconds

	saving         sync.Mutex
	manifest       []record.SegmentID // of the last checkpoint, sorted
	pinned         []record.SegmentID // of a checkpoint under way, sorted
	lastCheckpoint atomic.Int64
	recoveryMillis int64
}

// maxSessions bounds the sessions of a store.
const maxSessions = 1024

// Open opens a store, and recovers what a former life left in its directory.
func Open(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, errors.Join(err, closeReplicator(&o))
	}
	st := &Store{
		opts:     o,
		logged:   o.logged(),
		dev:      o.Device,
		epoch:    epoch.New(maxSessions),
		floors:   new(floors),
		graves:   new(graves),
		revisits: new(revisits),
		readers:  newReaders(64),
		open:     map[*Session]struct{}{},
		leaving:  make(chan struct{}),
		brought:  make(chan struct{}, 1),

		condemned: map[*hlog.Segment]condemned{},
	}
	st.limit.Store(o.MemoryBytes)
	st.policy.Store(uint32(o.Policy))
	ctx, stop := context.WithCancel(context.Background())
	st.ctx, st.stop, st.done = ctx, stop, ctx.Done()
	st.room.init()
	if err := st.start(ctx); err != nil {
		stop()
		return nil, errors.Join(err, st.abandon())
	}
	return st, nil
}

// start opens the parts, lowest first.
func (st *Store) start(ctx context.Context) (err error) {
	if st.dev == nil && st.opts.Dir != "" {
		if st.dev, err = device.OpenDisk(st.opts.Dir); err != nil {
			return err
		}
	}
	if st.dev != nil {
		if st.unlock, err = st.dev.Lock(); err != nil {
			return err
		}
	}
	if st.ix, err = index.New(index.Options{Epoch: st.epoch, LimitBytes: st.opts.indexBytes}); err != nil {
		return err
	}
	st.tables.init(st.opts.Databases, st.opts.Heads+2)
	st.tables.shared = st.opts.Cluster
	if err := st.loadTables(); err != nil {
		return err
	}
	if err := st.checkClusterTables(); err != nil {
		return err
	}
	if err := st.identify(); err != nil {
		return err
	}
	if err := st.openBlob(ctx); err != nil {
		return err
	}
	if err := st.openLog(); err != nil {
		return err
	}
	if st.keeper, err = st.NewSession(); err != nil {
		return err
	}
	st.keeper.head = st.log.Survivor()
	st.expect()
	if err := st.recover(ctx); err != nil {
		return err
	}
	if err := st.log.Begin(ctx); err != nil {
		return err
	}
	st.skipChunkIDs()
	st.log.Start()
	st.spawn(ctx, st.maintain)
	st.spawn(ctx, st.sweepLoop)
	st.spawn(ctx, st.checkpointLoop)
	st.spawn(ctx, st.uploadLoop)
	st.spawn(ctx, st.sendLoop)
	return nil
}

func (st *Store) openLog() (err error) {
	st.log, err = hlog.Open(hlog.Options{
		Device: st.dev, LogID: st.opts.LogID, SegmentBytes: st.opts.SegmentBytes, Heads: st.opts.Heads,
		Logged: st.opts.logged(), SyncEach: st.opts.Durability == Always,
		Room: st.takeRoom, Remote: st.readRemote, Replicator: st.opts.Replicator, Ready: st.room.nudge, Busy: st.busy, Epoch: st.epoch, Now: st.opts.Now, Logger: st.opts.Logger,
	}, 1)
	return err
}

func (st *Store) spawn(ctx context.Context, f func(context.Context)) {
	st.workers.Add(1)
	go func() {
		defer st.workers.Done()
		f(ctx)
	}()
}

// admit lets somebody begin what the end of the store has to wait for, until he says workers.Done; false: it is over, and so is the
// memory of its index and its log. Sessions are others' to end before.
func (st *Store) admit() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed.Load() {
		return false
	}
	st.workers.Add(1)
	return true
}

// every runs f after each pause, or sooner when that is asked for, until ctx
// ends.
func every(ctx context.Context, pause time.Duration, sooner <-chan struct{}, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sooner:
		case <-tick.C:
		}
		f()
	}
}

// replayed tells whether the log may ever be replayed, so that deletions must
// be noted in it.
func (st *Store) replayed() bool { return st.dev != nil }

// Close ends the background work, makes everything durable that is to be, and
// gives all resources back. No session may be in use.
func (st *Store) Close() error { return st.close(st.opts.Durability >= Checkpoint) }

// CloseUnsaved is Close without a last checkpoint: what the durability in force
// does not keep by itself is forgotten.
func (st *Store) CloseUnsaved() error { return st.close(false) }

func (st *Store) close(save bool) error {
	if st.closing.Swap(true) {
		return nil
	}
	var errs []error
	close(st.leaving)
	st.arriving.lookAll()
	st.buryAll()
	if save {
		errs = append(errs, st.saveAtEnd())
	}
	st.mu.Lock()
	st.closed.Store(true)
	st.mu.Unlock()
	st.stop()
	st.room.wake()
	st.workers.Wait()
	return errors.Join(append(errs, st.abandon())...)
}

// saveAtEnd is the checkpoint of a store that closes. A logged one does without:
// its snapshot only spares the next start some work, and closing the log tells
// whether the data is safe.
func (st *Store) saveAtEnd() error {
	err := st.Checkpoint(context.Background())
	if err != nil && st.logged {
		st.opts.Logger.Warn("the index was not saved, so the next start takes longer; no data is lost by that", "error", err)
		return nil
	}
	return err
}

// abandon closes what start opened.
func (st *Store) abandon() error {
	var errs []error
	if st.log != nil {
		errs = append(errs, st.log.Close())
	} else {
		errs = append(errs, closeReplicator(&st.opts))
	}
	if st.ix != nil {
		st.ix.Close()
		st.arriving.close()
	}
	if st.tier.blob != nil {
		errs = append(errs, st.tier.blob.Close())
	}
	if st.unlock != nil {
		st.unlock()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// closeReplicator is for a store that has no log to do so.
func closeReplicator(o *Options) error {
	if o.Replicator == nil {
		return nil
	}
	return o.Replicator.Close()
}

// Health tells what keeps the store from doing its work: after a failed sync
// nobody knows what is on the disk, and what cannot be copied any more is never
// acknowledged.
func (st *Store) Health() error { return st.log.Err() }

// AfterGuards runs f, in a goroutine of its own, once every session that is
// between Begin and End now has passed its End. Whoever changes something that
// sessions look at once a round, and calls this, knows then that all act on the
// new state: an asynchronous cut.
func (st *Store) AfterGuards(f func()) {
	st.epoch.Cut(func() { go f() })
	st.epoch.Drain() // All sessions may be outside, and stay there.
}

// LastCheckpoint is when the last checkpoint was completed; zero if never.
func (st *Store) LastCheckpoint() time.Time {
	ms := st.lastCheckpoint.Load()
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// SetMemoryLimit changes the memory limit, 0 for none, and its policy.
func (st *Store) SetMemoryLimit(bytes int64, p Policy) {
	st.limit.Store(bytes)
	st.policy.Store(uint32(p))
	st.room.wake()
}
