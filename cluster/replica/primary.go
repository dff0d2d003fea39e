package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
)

// Mode is how batches travel to backups.
type Mode string

// Modes.
const (
	OneSided Mode = "one-sided" // written into the backups' memory, their programs take no part
	RPC      Mode = "rpc"       // calls that the backups answer, the baseline
)

// Member is a node that could be a backup.
type Member struct {
	ID   view.NodeID
	Zone string
}

// Membership is who is in the cluster at one moment.
type Membership struct {
	Living []Member // those with a lease; whether this node is among them does not matter
	// Known is how many nodes the cluster has, dead or alive, this one included. Only
	// a node that is alone acknowledges what nobody else has.
	Known int
	// Ghosts are backups of this log, as the ledger calls them, that stand for replicas which their nodes have
	// lost. The nodes may live, and have others by now.
	Ghosts map[view.NodeID]view.NodeID
	// Changed is closed when this is no longer true.
	Changed <-chan struct{}
}

// Ledger is what the cluster's metadata says of this log. All that it says is there before
// the primary relies on it. Its calls are retried.
type Ledger interface {
	// AddBackup notes that a node may hold replicas that are needed.
	AddBackup(ctx context.Context, node view.NodeID) error
	// Exclude notes that none is needed there any more.
	Exclude(ctx context.Context, node view.NodeID) error
	// RaiseVersion makes open replicas of lower versions stale, and returns the new one.
	RaiseVersion(ctx context.Context) (uint64, error)
	// SetCopies notes how many backups each segment has, at least.
	SetCopies(ctx context.Context, copies int) error
}

// Caller calls other nodes; a peer.Pool is one.
type Caller interface {
	Call(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, answer any) ([]byte, error)
	Go(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, done func(head, bulk []byte, err error))
	// Drop ends calls under way to a node that does not answer.
	Drop(to view.NodeID)
}

// PrimaryOptions are what a Primary is made of.
type PrimaryOptions struct {
	Self    view.NodeID
	Members func() Membership
	Ledger  Ledger
	Peers   Caller
	// Device is the fabric that writes go over; RPC needs none.
	Device fabric.Device
	Mode   Mode // default OneSided
	// Copies is how many backups each segment shall have.
	Copies    int
	Placement Placement

	// What the ledger says at the start: the replica version, how many copies each segment
	// has, and which nodes may hold some. Of a log that is new: 1, Copies, none.
	Version   uint64
	HadCopies int
	Backups   []view.NodeID

	// OpenTimeout is how long a backup may take to open a replica before another one is asked; default 250 ms.
	OpenTimeout time.Duration
	// CallTimeout bounds other calls; default 2 s.
	CallTimeout time.Duration
	// CopyBytesPerSecond bounds how fast lost copies of closed segments are made
	// anew; default 64 MiB, negative is without bound.
	CopyBytesPerSecond int
	// SharedMemory has backups on the same machine read side segments in this node's memory.
	SharedMemory bool
	// HealthEvery is how often backups are asked for replicas that have gone bad; default 10 s.
	HealthEvery time.Duration

	Log *slog.Logger
	Now func() time.Time
}

func (o PrimaryOptions) withDefaults() PrimaryOptions {
	setDefault(&o.Mode, OneSided)
	if o.Version == 0 { // Else the ledger was asked, and may say that there are none.
		setDefault(&o.HadCopies, o.Copies)
	}
	setDefault(&o.Version, 1)
	setDefault(&o.OpenTimeout, 250*time.Millisecond)
	setDefault(&o.CallTimeout, 2*time.Second)
	setDefault(&o.CopyBytesPerSecond, 64<<20)
	setDefault(&o.HealthEvery, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func setDefault[T comparable](v *T, to T) {
	var none T
	if *v == none {
		*v = to
	}
}

// Primary keeps copies of this node's log on other nodes. It is the log's
// Replicator.
//
//	Sealed ──▶ streams of the segment ──▶ completions ──▶ watermark ──▶ Advanced
//	Open, Drop, closing, repair: calls, in the background
//
// Workers call Sealed and Watermark. They read open and streams, which are
// replaced as a whole, and take no lock that anybody holds for long. All other
// state belongs to the holder of mu, under which nothing waits.
type Primary struct {
	o      PrimaryOptions
	source hlog.Source

	open    atomic.Pointer[map[record.SegmentID]*openSegment]
	streams atomic.Pointer[map[uint32]*stream]
	water   watermark

	domain  fabric.Domain
	cq      fabric.CQ
	staging staging
	batch   [completionsAtOnce]fabric.Completion // theirs who take completions

	attendance attendance

	closer closer
	keeper keeper
	copier copier
	strays strays   // under mu
	remote sync.Map // of view.NodeID: backups that cannot map this node's memory
	lent   loans

	ctx    context.Context // ends with Close, or when replication has failed
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	failed sync.Once
	began  atomic.Bool

	closing  sync.Once
	closeErr error

	ledger turn // one adds or excludes backups at a time; taken before mu

	mu    sync.Mutex
	books books
}

// NewPrimary makes a primary; Begin starts it.
func NewPrimary(o PrimaryOptions) *Primary {
	p := &Primary{o: o.withDefaults(), ledger: newTurn()}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.open.Store(&map[record.SegmentID]*openSegment{})
	p.streams.Store(&map[uint32]*stream{})
	p.books.begin(p.o)
	p.attendance.begin()
	p.closer.begin()
	p.keeper.begin()
	p.copier.begin()
	p.strays.begin()
	return p
}

// Sealed posts a batch, or leaves it to gather behind others.
func (p *Primary) Sealed(id record.SegmentID, _, to uint32, _ record.BatchID, closed bool) {
	g := (*p.open.Load())[id]
	if g == nil {
		panic(fmt.Sprintf("replica: segment %d was sealed before it was opened", id))
	}
	if closed {
		g.end.Store(to)
	}
	g.sealed.Store(to)
	copies := *g.copies.Load()
	for _, s := range copies {
		s.again()
	}
	if len(copies) == 0 && p.count(g) { // This node is alone.
		p.keeper.advanced()
	}
}

// Watermark is the batch up to which all are in every copy.
func (p *Primary) Watermark() record.BatchID { return p.water.batch() }

// Close ends replication. The copies stay.
func (p *Primary) Close() error {
	p.closing.Do(func() { p.closeErr = p.close() })
	return p.closeErr
}

func (p *Primary) close() error {
	p.cancel()
	p.tasks.Wait()
	p.lent.close()
	for _, s := range *p.streams.Load() {
		s.retire()
	}
	p.mu.Lock()
	links := p.books.takeLinks()
	p.mu.Unlock()
	var err error
	for _, l := range links {
		err = errors.Join(err, l.close())
	}
	if p.cq != nil {
		err = errors.Join(err, p.domain.Close(), p.staging.close())
	}
	return err
}

// fail says that copies can never be made again.
func (p *Primary) fail(err error) {
	p.failed.Do(func() {
		p.o.Log.Error("replication has ended", "log", nameOf(p.source.LogID), "error", err)
		p.cancel()
		p.source.Failed(err)
	})
}

// refused looks at what a backup answered: a primary that was deposed ends.
func (p *Primary) refused(err error) {
	if errors.Is(err, ErrRetired) || errors.Is(err, ErrForeign) {
		p.fail(fmt.Errorf("this node was deposed: %w", err))
	}
}

// call calls a backup.
func (p *Primary) call(ctx context.Context, node view.NodeID, method string, head any, bulk []byte, answer any) ([]byte, error) {
	b, err := p.o.Peers.Call(ctx, node, method, head, bulk, answer)
	if err != nil {
		p.refused(err)
		return nil, err
	}
	return b, nil
}

// start runs a task until the primary is closed.
func (p *Primary) start(task func(context.Context)) {
	p.tasks.Add(1)
	go func() {
		defer p.tasks.Done()
		task(p.ctx)
	}()
}
