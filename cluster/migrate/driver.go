package migrate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Options say how migrations to a node are driven.
type Options struct {
	Self    view.NodeID
	Cache   *meta.Cache
	Member  func() (*meta.Member, error) // who the node is now, or that its lease was lost
	Peers   *peer.Pool
	Landing Landing
	Gate    Gate
	Log     *slog.Logger

	PullBytes  int            // of one pull; 20 KB
	Partitions int            // pulls under way at a time; 8
	Rate       int64          // bytes per second at most; 0 is no limit
	Busy       func() float64 // share of their time that front doors work, 0 to 1; may be nil
	Patience   time.Duration  // with a source that lives and does not answer, then ranges are returned; 15 s
	HaltAt     Step           // for tests
}

func (o Options) withDefaults() Options {
	if o.PullBytes == 0 {
		o.PullBytes = 20 << 10
	}
	if o.Partitions == 0 {
		o.Partitions = 8
	}
	if o.Patience == 0 {
		o.Patience = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Gate is the front doors' as far as migrations need it.
type Gate interface {
	// Open serves ranges that arrive.
	Open(ranges view.Ranges)
	// Shut has operations on them wait again. When it returns nobody executes on them, and all that was
	// is in every copy of the log, whose last batch it returns.
	Shut(ctx context.Context, ranges view.Ranges) (record.BatchID, error)
}

// Landing is the store that records arrive in.
type Landing interface {
	// Position is where the log stands: the next batch and the next segment.
	Position() (record.BatchID, record.SegmentID)
	// Arrive makes ranges ones that arrive: what is not there yet is asked for by want, which must not
	// wait. Ranges that arrive already, since the node started, are taken over.
	Arrive(ranges view.Ranges, ceiling uint64, want func(k Key, done func())) (Arrival, error)
}

// Arrival is ranges on their way into a store.
type Arrival interface {
	// Worker is for one goroutine.
	Worker() (Worker, error)
	// Settle says that the source has no record of keys but those that were imported.
	Settle(keys []Key)
	// Adopt makes all that was imported as safe as any write. Nothing is imported afterwards.
	Adopt(ctx context.Context) error
	// End says that nothing is missing any more: what is not there is nowhere.
	End()
	// Abandon is End for ranges that are given up.
	Abandon()
}

// Worker imports entries.
type Worker interface {
	Import(ctx context.Context, entries []byte) error
}

// Driver drives all migrations to one node.
type Driver struct {
	o Options

	mu    sync.Mutex
	moves map[ID]*move
	tasks sync.WaitGroup
}

// New makes a driver. Run it once.
func New(o Options) *Driver { return &Driver{o: o.withDefaults(), moves: map[ID]*move{}} }

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

// look begins what is not under way.
func (d *Driver) look(ctx context.Context, s *meta.Snapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range s.AllMigrations() {
		if m.Target != d.o.Self || m.Stage != meta.Wanted && m.Stage != meta.Moving || d.moves[m.ID] != nil {
			continue
		}
		one := newMove(d, m)
		d.moves[m.ID] = one
		d.tasks.Go(func() {
			one.run(ctx)
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.moves, m.ID)
		})
	}
}

// Metrics count what a driver does.
type Metrics struct {
	Moves   int   // under way
	Bytes   int64 // pulled by them
	Records int64
	Waiting int // keys that operations wait for
}

// Metrics tells how far migrations have come that are under way.
func (d *Driver) Metrics() (sum Metrics) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.moves {
		sum.Moves++
		sum.Bytes += m.bytes.Load()
		sum.Records += m.records.Load()
		sum.Waiting += m.priority.waiting()
	}
	return sum
}
