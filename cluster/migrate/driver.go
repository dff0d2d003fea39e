package migrate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// Options say how migrations to a node are driven.
type Options struct {
	Self   view.NodeID
	Cache  Metadata
	Member func() (*meta.Member, error) // who the node is now, or that its lease was lost
	Peers  *peer.Pool
	Store  *store.Store
	Gate   Gate
	Taking sync.Locker    // held while places begin to arrive, in one way or another
	Roster func() uint64  // number of the newest list of the log's segments that backups have
	Tier   *device.Bucket // where segments of other logs can be read; nil if there is none
	Log    *slog.Logger

	PullBytes  int   // of one pull; 20 KB
	Partitions int   // that are pulled from at a time; 32
	Rate       int64 // bytes per second at most; 0 is no limit
	// SharedMemory has a source on the same machine write entries to memory of this node.
	SharedMemory bool
	Patience     time.Duration // with a source that lives and does not answer, then ranges are returned; 15 s
	HaltAt       Step          // for tests
	HaltDir      string        // for tests; see Halts
}

func (o Options) withDefaults() Options {
	if o.PullBytes <= 0 {
		o.PullBytes = 20 << 10
	}
	if o.Partitions <= 0 { // By none nothing would be pulled, and all count as pulled.
		o.Partitions = 32
	}
	if o.Patience == 0 {
		o.Patience = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Metadata is what a node knows of the cluster: a meta.Cache.
type Metadata interface {
	Snapshot() *meta.Snapshot
	Changed() <-chan struct{}
	Wait(ctx context.Context, enough func(*meta.Snapshot) bool) (*meta.Snapshot, error)
}

// Gate is the front doors' as far as migrations need it.
type Gate interface {
	// Open serves ranges that arrive, and ends Expect of them.
	Open(ranges view.Ranges)
	// Expect has operations wait on ranges that are another's and about to change hands, or have been this node's and just
	// did: the other may not know yet, and would send clients back. Unexpect takes that back.
	Expect(ranges view.Ranges)
	Unexpect(ranges view.Ranges)
	// Shut has operations on them wait again. When it returns nobody executes on them, and all that was
	// is in every copy of the log, whose last batch it returns.
	Shut(ctx context.Context, ranges view.Ranges) (record.BatchID, error)
}

// Driver drives all migrations to one node.
type Driver struct {
	o Options

	turns chan struct{} // has one of each lane that imports

	mu    sync.Mutex
	moves map[ID]*move
	tasks sync.WaitGroup
	past  Totals // of migrations that are over
}

// New makes a driver. Run it once.
func New(o Options) *Driver {
	return &Driver{o: o.withDefaults(), turns: make(chan struct{}, atOnce()), moves: map[ID]*move{}}
}

// Run drives until ctx ends, and returns when nothing goes on any more.
func (d *Driver) Run(ctx context.Context) {
	defer d.tasks.Wait()
	for ctx.Err() == nil {
		changed := d.o.Cache.Changed()
		d.look(ctx, d.o.Cache.Snapshot())
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// driven tells whether a target has something to do for a migration, but to return what it got.
func driven(s meta.Stage) bool { return s == meta.Wanted || s == meta.Copying || s == meta.Moving }

// look begins what is not under way.
func (d *Driver) look(ctx context.Context, s *meta.Snapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range s.AllMigrations() {
		if m.Target != d.o.Self || !driven(m.Stage) || d.moves[m.ID] != nil {
			continue
		}
		one := newMove(d, m)
		one.ends = ctx
		d.moves[m.ID] = one
		d.tasks.Go(func() {
			one.run(ctx)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.past.end(one, d.o.Cache.Snapshot().Migrations[m.ID].Stage)
			delete(d.moves, m.ID)
		})
	}
}

// Adopt is for who replays the log of a source that died: it returns when nothing of the ranges is imported by a
// migration any more, and all that was is as safe as any write. The source's log is not needed for it then.
func (d *Driver) Adopt(ctx context.Context, ranges view.Ranges) error {
	// One that is only wanted has imported nothing, and begins after what is replayed here was: to wait for it would be for ever.
	s := d.o.Cache.Snapshot()
	some, err := d.quiet(ctx, ranges, func(m *move) bool { return s.Migrations[m.id].Stage != meta.Wanted })
	if err != nil {
		return err
	}
	for _, m := range some {
		if m.arrival == nil {
			continue
		}
		if err := m.arrival.Adopt(ctx); err != nil {
			return err
		}
	}
	return nil
}

// quiet returns the moves of places that are meant, once they import nothing any more.
func (d *Driver) quiet(ctx context.Context, ranges view.Ranges, meant func(*move) bool) (some []*move, err error) {
	d.mu.Lock()
	for _, m := range d.moves {
		if len(m.ranges.Intersect(ranges)) > 0 && meant(m) {
			some = append(some, m)
		}
	}
	d.mu.Unlock()
	for _, m := range some {
		select {
		case <-m.quiet:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return some, nil
}

// Metrics count what a driver does.
type Metrics struct {
	Totals
	Moves   int   // under way
	Bytes   int64 // pulled by them
	Records int64
	Waiting int   // keys that operations wait for
	Cold    int64 // records that are still at sources, and known of
}

// Metrics tells how far migrations have come that are under way.
func (d *Driver) Metrics() (sum Metrics) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum.Totals = d.totals()
	for _, m := range d.moves {
		sum.Moves++
		sum.Bytes += m.bytes.Load()
		sum.Records += m.records.Load()
		sum.Waiting += m.priority.waiting()
		sum.Cold += m.remaining()
	}
	return sum
}
