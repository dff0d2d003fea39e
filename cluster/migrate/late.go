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

// Late ownership, for comparison: the source serves until the target has everything.
//
//	target (drives)                                     source (answers, and serves)
//	copy: one step in etcd, nothing counts
//	copy      ─────────────────────────────────────────▶ notes which keys change from now on
//	pull      ═════════════════════════════════════════▶ entries; each pull is in all copies of the
//	                                                      target's log before the next of its partition
//	changes   ─────────────────────────────────────────▶ what the keys are that changed, or that they are gone;
//	          again until they are few
//	changes, the last ─────────────────────────────────▶ cut: operations on the ranges wait here
//	          ◀─────────────── and results of operations
//	all is in all copies of the target's log
//	hand over ─────────────────────────────────────────▶ one step in etcd: ranges, views, floor, the end
//	serves                                               drops the ranges
//
// Whatever goes wrong before the last step, the target drops its copy and begins anew: the source has everything.

// copied is a copy under way.
type copied struct {
	token    uint64 // of what the source notes
	from     record.BatchID
	segment  record.SegmentID
	importer *store.Importer
	changes  *store.ImportWorker
}

const (
	// fewChanges is how many keys may be left for when the source does not serve any more, if after
	// mostRounds there are not more anyway.
	fewChanges = 64
	mostRounds = 16
	// mostAttempts is how often a copy is begun.
	mostAttempts = 20
)

// copy copies all records, and what changes meanwhile, until little is left.
func (m *move) copy(ctx context.Context) (stage, error) {
	if err := m.halt(ctx, BeforeTransfer); err != nil {
		return copying, err
	}
	switch err := m.beginCopy(ctx); {
	case errors.Is(err, meta.ErrNotYet):
		return queued, nil
	case err != nil:
		return copying, err
	}
	began := time.Now()
	if err := m.copyAll(ctx); err != nil {
		return copying, err
	}
	if err := m.halt(ctx, CopiedAll); err != nil {
		return copying, err
	}
	left, rounds := 0, 0
	for ; rounds < mostRounds && (rounds == 0 || left > fewChanges); rounds++ {
		got, err := m.catchUp(ctx, false)
		if err != nil {
			return copying, err
		}
		left = got.Keys
	}
	m.log.Info("all records of the migration are copied", "records", m.records.Load(), "bytes", m.bytes.Load(), "rounds", rounds, "left", left,
		"took", time.Since(began).Round(time.Millisecond).String())
	return closing, nil
}

// beginCopy has the source note changes, when nothing is here of what an earlier attempt brought.
func (m *move) beginCopy(ctx context.Context) error {
	member, err := m.o.Member()
	if err != nil {
		return err
	}
	want, err := member.Copy(ctx, m.id) // First: what was offered may be taken until then.
	if err != nil {
		return err
	}
	m.want = want
	if m.want.Attempt > mostAttempts {
		_, err := m.giveUp(ctx, errAttempts)
		return errors.Join(errAttempts, err)
	}
	m.dropCopy()
	if err := m.o.Store.Retract(ctx, Ranges(m.ranges)); err != nil {
		return err
	}
	m.bytes.Store(0)
	m.records.Store(0)
	c := &copied{}
	if c.from, c.segment, err = m.o.Store.SettledPosition(ctx); err != nil {
		return err
	}
	if c.importer, err = m.o.Store.NewImporter(store.ImportOptions{Owns: m.ranges.Contains, Foreign: true}); err != nil {
		return err
	}
	m.copied = c
	if c.changes, err = c.importer.NewWorker(); err != nil {
		return err
	}
	var begun copyBegun
	if _, err := m.o.Peers.Call(ctx, m.want.Source, methodCopy, transfer{ID: m.id}, nil, &begun); err != nil {
		return err
	}
	c.token = begun.Token
	m.silence.end()
	m.total.Store(begun.Bytes)
	return nil
}

var errAttempts = fmt.Errorf("it was begun %d times and never came to its end", mostAttempts)

// dropCopy ends a copy, whatever came of it.
func (m *move) dropCopy() {
	if m.copied != nil {
		m.copied.importer.Abort()
		m.copied = nil
	}
}

// copyAll pulls all records, by as many pullers as there are partitions.
func (m *move) copyAll(ctx context.Context) error {
	p := &pulls{m: m, pace: pace{bytesPerSecond: m.o.Rate}}
	p.left = partitions(m.ranges, m.o.Partitions)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	errs := make([]error, min(m.o.Partitions, len(p.left)))
	for i := range errs {
		workers.Go(func() {
			if errs[i] = m.copySome(ctx, p); errs[i] != nil {
				cancel()
			}
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return m.copied.importer.Apply(ctx)
}

// copySome pulls piece after piece.
func (m *move) copySome(ctx context.Context, p *pulls) error {
	line, err := m.o.Peers.Line(m.want.Source)
	if err != nil {
		return err
	}
	defer func() { _ = line.Close() }()
	w, err := m.copied.importer.NewWorker()
	if err != nil {
		return err
	}
	one := &puller{line: line, worker: w}
	defer one.soon.drop()
	for {
		at, ok := p.next()
		if !ok {
			return nil
		}
		if err := m.copyPiece(ctx, p, one, at.piece); err != nil {
			return err
		}
	}
}

// copyPiece pulls one piece from its begin to its end. What a pull brought is in all copies of the log before the next.
func (m *move) copyPiece(ctx context.Context, p *pulls, one *puller, piece view.Range) error {
	ask := pull{ID: m.id, Range: piece, Bytes: uint32(m.o.PullBytes)}
	for {
		var got pulled
		one.head = ask.encode(one.head)
		entries, err := one.call(ctx, methodPull, peer.Raw(one.head), nil, got.decode)
		if err != nil {
			return err
		}
		if err := m.keepCopy(ctx, one.worker, entries, int(got.Records)); err != nil {
			return err
		}
		if err := m.halt(ctx, CopyingSome); err != nil || got.all() {
			return err
		}
		if err := p.pace.wait(ctx, len(entries)); err != nil {
			return err
		}
		ask.Cursor = got.Cursor
	}
}

// keepCopy imports entries and returns when they are as safe as any write.
func (m *move) keepCopy(ctx context.Context, w *store.ImportWorker, entries []byte, records int) error {
	err := w.Import(ctx, entries)
	if err == nil {
		err = w.Durable(ctx)
	}
	if err != nil {
		return fmt.Errorf("import what was copied: %w", err)
	}
	m.bytes.Add(int64(len(entries)))
	m.records.Add(int64(records))
	return nil
}

// catchUp copies what has changed since the last time. The last one has the source serve no more.
func (m *move) catchUp(ctx context.Context, last bool) (got changed, err error) {
	s, err := m.o.Peers.Stream(ctx, m.want.Source, methodChanges, changes{ID: m.id, Token: m.copied.token, Last: last})
	if err != nil {
		return got, err
	}
	defer s.Close()
	s.Stall(silent)
	for {
		got = changed{}
		bulk, end, err := s.Next(&got)
		if err == nil && len(bulk) > 0 {
			err = m.keepCopy(ctx, m.copied.changes, bulk, 0)
		}
		if err != nil {
			return got, err
		}
		if end {
			m.records.Add(int64(got.Keys))
			return got, m.copied.importer.Apply(ctx)
		}
	}
}

// close gets the rest from a source that serves no more, and has it hand the ranges over.
func (m *move) close(ctx context.Context) (stage, error) {
	member, err := m.o.Member()
	if err != nil {
		return closing, err
	}
	m.o.Gate.Expect(m.ranges)
	defer m.o.Gate.Unexpect(m.ranges) // From then on etcd says so, or it failed.
	began := time.Now()
	got, err := m.catchUp(ctx, true)
	if err != nil {
		return closing, err
	}
	m.o.Store.Succeed(got.Ceiling)
	if _, err := m.o.Store.Settle(ctx); err != nil {
		return closing, err
	}
	if err := m.halt(ctx, Closed); err != nil {
		return closing, err
	}
	c := m.copied
	offer := handOver{ID: m.id, Token: c.token, Copied: meta.Copied{
		From: c.from, FromSegment: c.segment, Attempt: m.want.Attempt, Incarnation: member.Incarnation(),
		Stats: meta.MigrationStats{Records: m.records.Load(), Bytes: m.bytes.Load()},
	}}
	if err := m.offer(ctx, offer); err != nil {
		return closing, err
	}
	m.log.Info("the source has handed over", "keys", got.Keys, "took", time.Since(began).Round(time.Millisecond).String())
	if err := m.halt(ctx, Completed); err != nil {
		return closing, err
	}
	return m.seen(ctx)
}

// offer has the source hand over.
func (m *move) offer(ctx context.Context, o handOver) error {
	ctx, cancel := context.WithTimeout(ctx, 2*silent)
	defer cancel()
	_, err := m.o.Peers.Call(ctx, m.want.Source, methodHandOver, o, nil, nil)
	return err
}

// Quiet returns when no copy of places is imported any more whose migration has ended.
func (d *Driver) Quiet(ctx context.Context, ranges view.Ranges) error {
	s := d.o.Cache.Snapshot()
	_, err := d.quiet(ctx, ranges, func(m *move) bool { return m.late && s.Migrations[m.id].Stage.Ended() })
	return err
}
