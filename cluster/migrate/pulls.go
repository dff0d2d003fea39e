package migrate

import (
	"context"
	"errors"
	"fmt"
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
	left []view.Range // that nobody pulls yet
	log  scanned      // what was read of the source's log, if that is how cold records come

	settled map[record.SegmentID]bool // all that was known of these segments of the source was asked for
	hurried func() bool               // somebody waits for the rest

	pullers []*puller
	urgent  *puller
	answers sync.WaitGroup
	ctx     context.Context // of urgent pulls
	cancel  context.CancelFunc
	single  sync.Mutex // held by a synchronous priority pull
}

// puller is a connection and a worker for one goroutine.
type puller struct {
	line   *peer.Line
	worker *store.ImportWorker
	head   []byte
}

func newPulls(m *move) *pulls {
	p := &pulls{m: m, pace: pace{bytesPerSecond: m.o.Rate, busy: m.o.Busy}}
	p.hurried = m.hurried
	p.left = pieces(m.want.Ranges, m.o.Partitions)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *pulls) puller() (*puller, error) {
	line, err := p.m.o.Peers.Line(p.m.want.Source)
	if err != nil {
		return nil, err
	}
	w, err := p.m.arrival.NewWorker()
	if err != nil {
		return nil, errors.Join(err, line.Close())
	}
	return &puller{line: line, worker: w}, nil
}

// open makes what pulls need, once.
func (p *pulls) open() (err error) {
	for len(p.pullers) < min(p.m.o.Partitions, len(p.left)) {
		one, err := p.puller()
		if err != nil {
			return err
		}
		p.pullers = append(p.pullers, one)
	}
	if p.urgent == nil {
		if p.urgent, err = p.puller(); err != nil {
			return err
		}
		if p.m.want.Options.PriorityPulls != meta.PriorityPullsNone {
			p.answers.Go(p.answerAll)
		}
	}
	return nil
}

// close ends urgent pulls. It may be called again.
func (p *pulls) close() {
	p.cancel()
	if p.urgent != nil {
		_ = p.urgent.line.Close()
	}
	p.answers.Wait()
	for _, one := range p.pullers {
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
	took := time.Since(began)
	m.log.Info("all records of the migration are here, or known of", "records", m.records.Load(), "cold", m.arrival.Indirections(), "bytes", m.bytes.Load(), "asked", m.asked.Load(),
		"took", took.Round(time.Millisecond).String(), "MBps", int(float64(m.bytes.Load())/took.Seconds()/1e6))
	if err := m.halt(ctx, Pulled); err != nil {
		return pulling, err
	}
	return settling, nil
}

// all pulls until nothing is left.
func (p *pulls) all(ctx context.Context) error {
	if err := p.open(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	errs := make([]error, len(p.pullers))
	for i, one := range p.pullers {
		workers.Go(func() {
			if errs[i] = p.work(ctx, one); errs[i] != nil {
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

// discard gives pullers up that may be in the middle of something.
func (p *pulls) discard() {
	for _, one := range p.pullers {
		_ = one.line.Close()
		one.worker.Close()
	}
	p.pullers = nil
}

// work pulls piece after piece.
func (p *pulls) work(ctx context.Context, one *puller) error {
	for {
		piece, ok := p.next()
		if !ok {
			return nil
		}
		if err := p.piece(ctx, one, piece); err != nil {
			p.mu.Lock()
			p.left = append(p.left, piece)
			p.mu.Unlock()
			return err
		}
		p.m.arrival.Pulled(store.Range(piece))
	}
}

func (p *pulls) next() (view.Range, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.left) - 1
	if last < 0 {
		return view.Range{}, false
	}
	r := p.left[last]
	p.left = p.left[:last]
	return r, true
}

// piece pulls one piece from its begin to its end.
func (p *pulls) piece(ctx context.Context, one *puller, piece view.Range) error {
	ask := pull{ID: p.m.id, Range: piece, Bytes: uint32(p.m.o.PullBytes), Since: p.log.since, Indirect: p.m.want.Options.Indirect()}
	for {
		got, err := p.once(ctx, one, &ask)
		if err != nil {
			return err
		}
		if err := p.m.halt(ctx, Pulling); err != nil {
			return err
		}
		if got.all() {
			return nil
		}
		ask.Cursor = got.Cursor
	}
}

// once makes one pull and imports what it brings.
func (p *pulls) once(ctx context.Context, one *puller, ask *pull) (got pulled, err error) {
	one.head = ask.encode(one.head)
	entries, err := one.call(ctx, methodPull, peer.Raw(one.head), nil, &got)
	if err != nil {
		return got, err
	}
	began := time.Now()
	entries, cold, err := got.split(entries)
	if err == nil {
		err = one.worker.Refer(cold)
	}
	if err != nil {
		return got, err
	}
	if err := p.replay(ctx, one, entries); err != nil {
		return got, fmt.Errorf("import what was pulled: %w", err)
	}
	p.m.bytes.Add(int64(len(entries)))
	p.m.records.Add(int64(got.Records))
	return got, p.pace.wait(ctx, time.Since(began), len(entries))
}

// replay imports what a pull brought, one at a time of all: the other processors are for clients, and for what they wait for.
func (p *pulls) replay(ctx context.Context, one *puller, entries []byte) error {
	p.m.d.replay.Lock()
	defer p.m.d.replay.Unlock()
	return one.worker.Import(ctx, entries)
}

// call asks the source, which must answer soon.
func (one *puller) call(ctx context.Context, method string, head peer.Raw, bulk []byte, got *pulled) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, silent)
	defer cancel()
	var answer peer.Raw
	entries, err := one.line.Call(ctx, method, head, bulk, &answer)
	if err != nil {
		return nil, err
	}
	return entries, got.decode(answer)
}

// answerAll brings what operations wait for. One batch is under way at a time.
func (p *pulls) answerAll() {
	for {
		batch := p.m.priority.take(p.ctx)
		if batch == nil {
			return
		}
		list := make([]store.ArrivingKey, len(batch))
		for i, w := range batch {
			list[i] = w.key
		}
		if p.fetch(list) != nil {
			return
		}
		p.m.priority.granted(batch)
	}
}

// now brings keys for one operation, one after the other and without looking at what others wait for: what priority pulls
// are compared with.
func (p *pulls) now(list []store.ArrivingKey, done func(error)) {
	for _, k := range list {
		if p.fetch([]store.ArrivingKey{k}) != nil {
			return // Who gives the arrival up, or ends it, lets the operation go.
		}
	}
	done(nil)
}

// fetch asks for keys until they are there, or known not to be. An error: nobody asks any more.
func (p *pulls) fetch(list []store.ArrivingKey) error {
	p.single.Lock()
	defer p.single.Unlock()
	for failures := 0; ; failures++ {
		err := p.fetchOnce(list)
		switch {
		case err == nil:
			return nil
		case p.ctx.Err() != nil:
			return p.ctx.Err()
		case failures == 0:
			p.m.log.Warn("what operations wait for did not come; it is asked for again", "keys", len(list), "why", err)
		}
		pauseFor(p.ctx, retryPause)
	}
}

func (p *pulls) fetchOnce(list []store.ArrivingKey) error {
	p.m.asked.Add(int64(len(list)))
	cold, rest := p.urgent.worker.Refers(list)
	if err := p.resolve(p.ctx, p.urgent, cold); err != nil {
		return err
	}
	if err := p.fetchKeys(rest); err != nil {
		return err
	}
	p.m.arrival.Settle(list...)
	return nil
}

// fetchKeys brings keys of which nothing is known yet.
func (p *pulls) fetchKeys(list []store.ArrivingKey) error {
	if len(list) == 0 {
		return nil
	}
	var bulk []byte
	for i := range list {
		bulk = appendKey(bulk, &list[i])
	}
	for ask := (keys{ID: p.m.id}); ; {
		var got pulled
		entries, err := p.urgent.call(p.ctx, methodKeys, ask.encode(), bulk, &got)
		if err != nil {
			return err
		}
		if err := p.urgent.worker.Import(p.ctx, entries); err != nil {
			return err
		}
		p.m.bytes.Add(int64(len(entries)))
		p.m.records.Add(int64(got.Records))
		if got.all() {
			return nil
		}
		ask.Cursor = got.Cursor
	}
}
