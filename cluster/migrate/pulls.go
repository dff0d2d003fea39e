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
)

// pulls brings all records of a migration here: partitions in the background, and what operations
// wait for before all else.
type pulls struct {
	m    *move
	pace pace

	mu   sync.Mutex
	left []view.Range // pieces that nobody pulls yet

	pullers []*puller
	urgent  *puller
}

// puller is a connection and a worker for one goroutine.
type puller struct {
	line   *peer.Line
	worker Worker
	head   []byte
}

func newPulls(m *move) *pulls {
	p := &pulls{m: m, pace: pace{bytesPerSecond: m.o.Rate, busy: m.o.Busy}}
	p.left = pieces(m.want.Ranges, m.o.Partitions)
	return p
}

func (p *pulls) puller() (*puller, error) {
	line, err := p.m.o.Peers.Line(p.m.want.Source)
	if err != nil {
		return nil, err
	}
	w, err := p.m.arrival.Worker()
	if err != nil {
		return nil, errors.Join(err, line.Close())
	}
	return &puller{line: line, worker: w}, nil
}

// open makes what pulls need, once.
func (p *pulls) open() (err error) {
	if p.urgent == nil {
		if p.urgent, err = p.puller(); err != nil {
			return err
		}
	}
	for len(p.pullers) < p.m.o.Partitions {
		one, err := p.puller()
		if err != nil {
			return err
		}
		p.pullers = append(p.pullers, one)
	}
	return nil
}

func (p *pulls) close() {
	if p.urgent != nil {
		_ = p.urgent.line.Close()
	}
	for _, one := range p.pullers {
		_ = one.line.Close()
	}
}

// importFirst takes what came with the source's yielding.
func (p *pulls) importFirst(ctx context.Context, entries []byte) error {
	if err := p.open(); err != nil || len(entries) == 0 {
		return err
	}
	return p.urgent.worker.Import(ctx, entries)
}

// pull is the stage in which all comes.
func (m *move) pull(ctx context.Context) (stage, error) {
	if err := m.pulls.open(); err != nil {
		return pulling, err
	}
	if err := m.pulls.all(ctx); err != nil {
		return pulling, err
	}
	m.log.Info("all records of the migration are here", "records", m.records.Load(), "bytes", m.bytes.Load(),
		"took", time.Since(m.began).Round(time.Millisecond).String())
	if err := m.halt(ctx, Pulled); err != nil {
		return pulling, err
	}
	return adopting, nil
}

// all pulls until nothing is left, and answers operations that wait meanwhile.
func (p *pulls) all(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var urgent, background sync.WaitGroup
	urgent.Go(func() { p.answerAll(ctx) })
	errs := make([]error, len(p.pullers))
	for i, one := range p.pullers {
		background.Go(func() {
			if errs[i] = p.work(ctx, one); errs[i] != nil {
				cancel()
			}
		})
	}
	background.Wait()
	cancel()
	urgent.Wait()
	return errors.Join(errs...)
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
	ask := pull{ID: p.m.id, Range: piece, Bytes: uint32(p.m.o.PullBytes)}
	for {
		got, err := p.once(ctx, one, &ask)
		if err != nil {
			return err
		}
		if err := p.m.halt(ctx, Pulling); err != nil {
			return err
		}
		if got.Cursor == 0 {
			return nil
		}
		ask.Cursor = got.Cursor
	}
}

// once makes one pull and imports what it brings.
func (p *pulls) once(ctx context.Context, one *puller, ask *pull) (got pulled, err error) {
	one.head = ask.encode(one.head)
	var head peer.Raw
	calling, cancel := context.WithTimeout(ctx, silent)
	entries, err := one.line.Call(calling, methodPull, peer.Raw(one.head), nil, &head)
	cancel()
	if err != nil {
		return got, err
	}
	if err := got.decode(head); err != nil {
		return got, err
	}
	began := time.Now()
	if err := one.worker.Import(ctx, entries); err != nil {
		return got, fmt.Errorf("import what was pulled: %w", err)
	}
	p.m.bytes.Add(int64(len(entries)))
	p.m.records.Add(int64(got.Records))
	return got, p.pace.wait(ctx, time.Since(began), len(entries))
}

// answerAll brings what operations wait for, until ctx ends.
func (p *pulls) answerAll(ctx context.Context) {
	if p.m.want.Options.PriorityPulls == meta.PriorityPullsNone {
		return
	}
	for {
		batch := p.m.priority.take(ctx)
		if batch == nil {
			return
		}
		for ctx.Err() == nil {
			err := p.fetch(ctx, p.urgent, batch)
			if err == nil {
				break
			}
			p.m.log.Warn("what operations wait for did not come; it is asked for again", "keys", len(batch), "why", err)
			pauseFor(ctx, retryPause)
		}
		if ctx.Err() != nil {
			p.m.priority.putBack(batch)
			return
		}
		p.m.priority.granted(batch)
	}
}

// fetch asks for keys and imports them. Afterwards they are there, or known not to be.
func (p *pulls) fetch(ctx context.Context, one *puller, batch []*wish) error {
	var ask []byte
	keys := make([]Key, len(batch))
	for i, w := range batch {
		keys[i] = w.key
		ask = appendKey(ask, &w.key)
	}
	ctx, cancel := context.WithTimeout(ctx, silent)
	defer cancel()
	p.m.asked.Add(1)
	entries, err := one.line.Call(ctx, methodKeys, peer.Raw(appendID(nil, p.m.id)), ask, nil)
	if err != nil {
		return err
	}
	if err := one.worker.Import(ctx, entries); err != nil {
		return err
	}
	p.m.arrival.Settle(keys)
	return nil
}
