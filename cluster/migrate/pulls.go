package migrate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// pulls brings all records of a migration here: pieces of the ranges in the background, and what operations
// wait for before all else, from when the ranges are served until the migration is over.
type pulls struct {
	m    *move
	pace pace

	mu   sync.Mutex
	left []*partition // that nobody pulls
	log  scanned      // what was read of the source's log, if that is how cold records come

	settled map[record.SegmentID]bool // all that was known of these segments of the source was asked for
	hurried func() bool               // somebody waits for the rest

	lanes   []*lane
	urgent  *puller
	answers sync.WaitGroup
	ctx     context.Context // of urgent pulls
	cancel  context.CancelFunc
	single  sync.Mutex // held by a synchronous priority pull
	tier    *tier      // where the source's segments may be, too; nil if there is none
}

// puller is a connection, and a worker for what comes over it, of one goroutine.
type puller struct {
	line   *peer.Line
	worker *store.ImportWorker
	head   []byte
	bulk   []byte // for the keys that it asks for
	soon   patience
}

func newPulls(m *move) *pulls {
	p := &pulls{m: m, pace: pace{bytesPerSecond: m.o.Rate}}
	p.hurried = m.hurried
	p.tier = newTier(m.o.Tier, m.want.SourceLog)
	p.left = partitions(m.want.Ranges, m.o.Partitions)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *pulls) puller() (*puller, error) {
	line, err := p.m.line()
	if err != nil {
		return nil, err
	}
	w, err := p.m.arrival.NewWorker()
	if err != nil {
		return nil, errors.Join(err, line.Close())
	}
	return &puller{line: line, worker: w}, nil
}

// open makes what urgent pulls need, once.
func (p *pulls) open() error {
	if p.urgent != nil {
		return nil
	}
	one, err := p.puller()
	if err != nil {
		return err
	}
	p.urgent = one
	if p.m.want.Options.PriorityPulls != meta.PriorityPullsNone {
		p.m.priority.bell.hang()
		p.answers.Go(p.answerAll)
	}
	return nil
}

// openLanes makes what other pulls need, once.
func (p *pulls) openLanes() error {
	n := min(atOnce(), p.m.o.Partitions)
	for len(p.lanes) < n {
		one, err := p.lane((p.m.o.Partitions + n - 1 - len(p.lanes)) / n)
		if err != nil {
			return err
		}
		p.lanes = append(p.lanes, one)
	}
	return nil
}

// close ends urgent pulls. It may be called again.
func (p *pulls) close() {
	p.cancel()
	p.m.priority.bell.ring()
	if p.urgent != nil {
		_ = p.urgent.line.Close()
	}
	p.answers.Wait()
	p.m.priority.bell.takeDown()
	for _, one := range p.lanes {
		_ = one.line.Close()
	}
}

// importFirst takes what came with the source's yielding.
func (p *pulls) importFirst(ctx context.Context, entries []byte) error {
	if err := p.open(); err != nil || len(entries) == 0 {
		return err
	}
	p.single.Lock()
	defer p.single.Unlock()
	return p.urgent.worker.Import(ctx, entries)
}

// pull is the stage in which all comes.
func (m *move) pull(ctx context.Context) (stage, error) {
	began := time.Now()
	if m.want.Options.Cold == meta.ColdScan {
		if err := m.pulls.scan(ctx); err != nil {
			return pulling, err
		}
	}
	if err := m.pulls.all(ctx); err != nil {
		return pulling, err
	}
	m.served = time.Now().UTC()
	took := time.Since(began)
	m.log.Info("all records of the migration are here, or known of", "records", m.records.Load(), "cold", m.arrival.Indirections(), "bytes", m.bytes.Load(), "landed", m.landed.Load(), "asked", m.asked.Load(),
		"awaited", time.Duration(m.awaited.Load()).Round(time.Millisecond).String(), "replayed", time.Duration(m.replayed.Load()).Round(time.Millisecond).String(),
		"took", took.Round(time.Millisecond).String(), "MBps", int(float64(m.bytes.Load())/took.Seconds()/1e6))
	if err := m.halt(ctx, Pulled); err != nil {
		return pulling, err
	}
	return settling, nil
}

// all pulls until nothing is left.
func (p *pulls) all(ctx context.Context) error {
	if err := errors.Join(p.open(), p.openLanes()); err != nil {
		return err
	}
	p.m.arrival.Hasten(true)
	defer p.m.arrival.Hasten(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	errs := make([]error, len(p.lanes))
	for i, one := range p.lanes {
		workers.Go(func() {
			if errs[i] = one.run(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	workers.Wait()
	err := errors.Join(errs...)
	if err != nil {
		p.discard()
	}
	return err
}

// discard gives lanes up that may be in the middle of something.
func (p *pulls) discard() {
	for _, one := range p.lanes {
		one.close()
	}
	p.lanes = nil
}

func (p *pulls) next() (*partition, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.left) - 1
	if last < 0 {
		return nil, false
	}
	at := p.left[last]
	p.left = p.left[:last]
	return at, true
}

// leave leaves a piece to who pulls next, who goes on from where it is: the source keeps nothing of a pull.
func (p *pulls) leave(at *partition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, at)
}

// partitions are the pieces of ranges, of which nothing was pulled.
func partitions(ranges view.Ranges, n int) (all []*partition) {
	for _, piece := range pieces(ranges, n) {
		all = append(all, &partition{piece: piece})
	}
	return all
}

// replay imports what a pull brought, as many at a time as may: the other processors are for clients, and for what they wait for.
func (p *pulls) replay(ctx context.Context, one *puller, entries []byte) error {
	p.m.d.turns <- struct{}{}
	defer func() { <-p.m.d.turns }()
	return one.worker.Import(ctx, entries)
}

// call asks the source, which must answer soon; read takes the head of the answer.
func (one *puller) call(ctx context.Context, method string, head peer.Raw, bulk []byte, read func([]byte) error) ([]byte, error) {
	var answer peer.Raw
	entries, err := one.line.Call(one.soon.within(ctx), method, head, bulk, &answer)
	if err != nil {
		return nil, err
	}
	return entries, read(answer)
}

// close ends it, with what it has not given away.
func (one *puller) close() {
	one.soon.drop()
	_ = one.line.Close()
	one.worker.Close()
}

// patience is how long the source may be silent. Calls in a row share one context: a timer of each would cost more than what it
// is for.
type patience struct {
	of    context.Context // what it ends with
	ctx   context.Context
	since time.Time
	stop  context.CancelFunc
}

// within is a context that ends with ctx, or when the source has been silent for about as long as it may.
func (p *patience) within(ctx context.Context) context.Context {
	now := time.Now()
	if p.of == ctx && p.ctx.Err() == nil && now.Sub(p.since) < silent/10 {
		return p.ctx
	}
	p.drop()
	p.of, p.since = ctx, now
	p.ctx, p.stop = context.WithTimeout(ctx, silent)
	return p.ctx
}

func (p *patience) drop() {
	if p.stop != nil {
		p.stop()
	}
	*p = patience{}
}
