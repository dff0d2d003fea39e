package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
)

// BackupOptions say how a backup is made.
type BackupOptions struct {
	Dir string
	// BufferDir is where buffers are; default Dir/buffers. RDMA hardware cannot write
	// to files of most file systems: give it one on tmpfs. What lies there then
	// survives kill -9, but not the end of the machine.
	BufferDir string
	Device    fabric.Device // nil: only Append writes to it
	Node      view.NodeID   // whose backup it is
	// SegmentBytes is the size of a buffer.
	SegmentBytes uint32
	// Buffers is how many there are at most; default 192. Ready are made at once; default 4.
	Buffers, Ready int
	// HoldUp is how long the machine goes on when the power fails; default 10 s. Not more buffers
	// are lent than the disk takes in that time.
	HoldUp time.Duration
	// FlushRate is how many bytes a second the disk takes; 0 measures it.
	FlushRate int64
	// Place gives the place of an entry; false: it belongs to none. By default
	// puts and tombstones have the place of their key.
	Place func(record.Ptr) (record.Place, bool)
	// Corrupt is told of replicas that were found to be corrupt. It may be nil;
	// health tells, too.
	Corrupt func(log record.LogID, id record.SegmentID)
	// ScrubRate is how many bytes a second of closed replicas are read again, to find
	// those that have changed; default 4 MiB, negative for never.
	ScrubRate int64
	Log       *slog.Logger
}

func (o BackupOptions) withDefaults() (BackupOptions, error) {
	if o.Dir == "" || o.SegmentBytes < record.SegmentHeaderBytes || o.SegmentBytes > record.MaxSegmentBytes || o.SegmentBytes%4096 != 0 {
		return o, fmt.Errorf("replica: a backup needs a directory and segments of up to %d bytes, whole pages of 4096; got %q and %d", record.MaxSegmentBytes, o.Dir, o.SegmentBytes)
	}
	if o.BufferDir == "" {
		o.BufferDir = filepath.Join(o.Dir, "buffers")
	}
	if o.Buffers == 0 {
		o.Buffers = 192
	}
	if o.Ready == 0 {
		o.Ready = 4
	}
	if o.HoldUp == 0 {
		o.HoldUp = 10 * time.Second
	}
	if o.ScrubRate == 0 {
		o.ScrubRate = 4 << 20
	}
	if o.Place == nil {
		o.Place = placeOfRecord
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

func placeOfRecord(p record.Ptr) (record.Place, bool) {
	if t := p.Type(); t != record.TypePut && t != record.TypeTombstone {
		return 0, false
	}
	return record.PlaceOf(p.Table(), p.Key()), true
}

// Backup keeps replicas of other nodes' logs in a directory:
//
//	buffers/N.buffer         open replicas, and closed ones until they are flushed
//	replicas/LOG-SEGMENT     closed ones
//	logs/LOG                 what is known of a log: its node, roster, whether it is retired
//	logs/LOG.retired         says the last of these where there was no room for it
//
// Locks are taken in this order: a log's, then the backup's, then the pool's.
type Backup struct {
	o       BackupOptions
	lock    *os.File
	id      uint64
	pool    *bufferPool
	savings savings
	count   counters

	handles sync.Map // of open replicas, for Append

	mu   sync.Mutex
	logs map[record.LogID]*copies

	flushes  chan struct{} // holds one if there may be work for the flusher
	waiting  queue
	reading  chan struct{} // bounds the fetches at a time
	fetched  atomic.Int64  // when the last one ended
	shelf    shelf
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	closing  sync.Once
	closeErr error

	looking func() // for tests: called while a replica that is to be closed is looked at
}

// fewBuffers is what a small cluster needs of each of its nodes.
const fewBuffers = 8

// maxFetches is how many segments are read at a time for heirs.
const maxFetches = 8

// OpenBackup finds the replicas of an earlier process in the directory, open ones
// included, and makes them available.
func OpenBackup(o BackupOptions) (*Backup, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Backup{
		o: o, logs: map[record.LogID]*copies{}, savings: savings{path: filepath.Join(o.Dir, "savings")}, shelf: shelf{pause: recoveryPause},
		flushes: make(chan struct{}, flushers), reading: make(chan struct{}, maxFetches),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	if err := b.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("replica: open the backup in %s: %w", o.Dir, err), b.Close())
	}
	b.pool.wake = b.wakeFlusher
	for range flushers {
		b.running.Go(b.flushAll)
	}
	if o.ScrubRate > 0 {
		b.running.Go(b.scrubAll)
	}
	b.wakeFlusher()
	return b, nil
}

func (b *Backup) open() error {
	for _, dir := range []string{b.o.Dir, b.o.BufferDir, b.dir("replicas"), b.dir("logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := b.lockDir(); err != nil {
		return err
	}
	b.savings.put()
	if err := b.readID(); err != nil {
		return err
	}
	limit, err := b.limit()
	if err != nil {
		return err
	}
	var used []*buffer
	var broken []string
	if b.pool, used, broken, err = openPool(b.o.BufferDir, b.o.SegmentBytes, limit); err != nil {
		return err
	}
	if err := b.find(used, broken); err != nil {
		return err
	}
	if err := b.pool.prepare(b.o.Ready); err != nil {
		b.o.Log.Error("there is no room for buffers: copies will be refused until there is", "dir", b.o.Dir, "error", err)
	}
	return nil
}

// lockDir keeps a second process out.
func (b *Backup) lockDir() (err error) {
	if b.lock, err = os.OpenFile(filepath.Join(b.o.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(b.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another process uses it: %w", err)
	}
	return nil
}

// ID names the directory: replicas that another one had are not here. 0: it has no name yet, for its disk was full.
func (b *Backup) ID() uint64 { return b.id }

// readID reads it, or gives the directory one.
func (b *Backup) readID() error {
	path := filepath.Join(b.o.Dir, "id")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b.id = rand.Uint64() | 1
		if err = replaceFile(path, fmt.Appendf(nil, "%016x\n", b.id)); isFull(err) {
			b.id, err = 0, nil
		}
		return err
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Sscanf(string(text), "%x", &b.id); err != nil || b.id == 0 {
		return fmt.Errorf("%s is damaged: move the directory away, and the node begins with an empty one", path)
	}
	return nil
}

// limit is how many buffers may wait to be flushed: what the disk takes while the
// power lasts.
func (b *Backup) limit() (int, error) {
	rate := b.o.FlushRate
	if rate == 0 {
		measured, err := measureFlush(b.o.Dir)
		if err != nil && !isFull(err) {
			return 0, err
		}
		rate = measured
	}
	limit := min(int64(float64(rate)*b.o.HoldUp.Seconds()/float64(b.o.SegmentBytes)), int64(b.o.Buffers))
	b.o.Log.Info("backup", "dir", b.o.Dir, "flush-bytes-per-second", rate, "hold-up", b.o.HoldUp, "buffers", limit)
	if limit < fewBuffers && limit < int64(b.o.Buffers) {
		b.o.Log.Warn("the disk is slow, so few copies are taken at a time: others may have to be asked", "flush-bytes-per-second", rate, "buffers", limit)
	}
	return int(max(limit, 1)), nil
}

func (b *Backup) dir(name string) string { return filepath.Join(b.o.Dir, name) }

// Handle answers primaries, coordinators and heirs on a server.
func (b *Backup) Handle(s *peer.Server) {
	s.Handle(MethodConnect, b.onConnect)
	s.Handle(MethodOpen, b.onOpen)
	s.HandleInOrder(MethodAppend, b.onAppend)
	s.Handle(MethodClose, b.onClose)
	s.Handle(MethodRaise, b.onRaise)
	s.HandleLent(MethodPut, b.onPut)
	s.Handle(MethodRoster, b.onRoster)
	s.Handle(MethodDiscard, b.onDiscard)
	s.Handle(MethodForget, b.onForget)
	s.Handle(MethodSurvey, b.onSurvey)
	s.Handle(MethodFetch, b.onFetch)
	s.Handle(MethodHealth, b.onHealth)
}

// Close ends all queue pairs. Replicas stay where they are, open ones in their buffers.
// The server that Handle was called with is closed before, for its calls still read.
func (b *Backup) Close() error {
	b.closing.Do(func() { b.closeErr = b.close() })
	return b.closeErr
}

func (b *Backup) close() error {
	b.cancel()
	b.running.Wait()
	var errs []error
	for _, l := range b.all() {
		errs = append(errs, l.close())
	}
	if b.pool != nil {
		errs = append(errs, b.pool.close())
	}
	if b.lock != nil {
		errs = append(errs, b.lock.Close())
	}
	return errors.Join(errs...)
}
