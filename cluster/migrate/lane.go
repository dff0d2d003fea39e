package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/background"
)

// lane brings pieces of the ranges over one connection, by one modest goroutine here and one at the source. Of each of
// its partitions one pull is under way: while one is replayed the others are on their way, and neither end waits
// for the other's processor.
type lane struct {
	*puller
	p     *pulls
	most  int // partitions
	under []*partition

	soon  context.Context // when the source is to have answered
	since time.Time       // when that was said
	stop  context.CancelFunc
}

// partition is a piece that is being pulled.
type partition struct {
	piece  view.Range
	cursor store.PullCursor
}

func (p *pulls) lane(partitions int) (*lane, error) {
	one, err := p.puller()
	if err != nil {
		return nil, err
	}
	return &lane{puller: one, p: p, most: partitions}, nil
}

// run pulls until no piece is left. It is for a goroutine of its own. After an error what it was at is left to
// others.
func (l *lane) run(ctx context.Context) error {
	background.Modest()
	err := l.fill(ctx)
	for err == nil && len(l.under) > 0 {
		err = l.once(ctx)
	}
	for _, at := range l.under {
		l.p.leave(at.piece)
	}
	l.under = nil
	if l.stop != nil {
		l.stop()
		l.soon, l.stop = nil, nil
	}
	return err
}

// patience is a context that ends when the source has been silent for about as long as it may. Many pulls share one: a timer
// for each would cost more than what it is for.
func (l *lane) patience(ctx context.Context) context.Context {
	if now := time.Now(); l.soon == nil || now.Sub(l.since) > silent/10 {
		if l.stop != nil {
			l.stop()
		}
		l.since = now
		l.soon, l.stop = context.WithTimeout(ctx, silent)
	}
	return l.soon
}

// fill begins as many partitions as there may be.
func (l *lane) fill(ctx context.Context) error {
	for len(l.under) < l.most {
		piece, ok := l.p.next()
		if !ok {
			return nil
		}
		if err := l.ask(ctx, &partition{piece: piece}); err != nil {
			return err
		}
	}
	return nil
}

// ask sends the next pull of a partition. It counts as under way even if that fails.
func (l *lane) ask(ctx context.Context, at *partition) error {
	l.under = append(l.under, at)
	q := pull{
		ID: l.p.m.id, Range: at.piece, Cursor: at.cursor, Bytes: uint32(l.p.m.o.PullBytes),
		Since: l.p.log.since, Indirect: l.p.m.want.Options.Indirect(),
	}
	l.head = q.encode(l.head)
	return l.line.Send(l.patience(ctx), methodPull, l.head, nil)
}

// once takes the answer to the oldest pull, replays it, and sends the next of the same partition.
func (l *lane) once(ctx context.Context) error {
	at := l.under[0]
	got, bytes, err := l.replay(ctx)
	if err != nil {
		return err
	}
	if err := l.p.m.halt(ctx, Pulling); err != nil {
		return err
	}
	if err := l.p.pace.wait(ctx, bytes); err != nil {
		return err
	}
	l.under = append(l.under[:0], l.under[1:]...)
	if !got.all() {
		at.cursor = got.Cursor
		return l.ask(ctx, at)
	}
	background.Aloud(func() { l.p.m.arrival.Pulled(store.Range(at.piece)) })
	return l.fill(ctx)
}

// replay waits for an answer and imports what it brings.
func (l *lane) replay(ctx context.Context) (got pulled, bytes int, err error) {
	began := time.Now()
	head, entries, err := l.line.Receive(l.patience(ctx))
	if err == nil {
		err = got.decode(head)
	}
	var cold []store.Indirection
	if err == nil {
		entries, cold, err = got.split(entries)
	}
	if err == nil && len(cold) > 0 {
		background.Aloud(func() { err = l.worker.Refer(cold) })
	}
	if err != nil {
		return got, 0, err
	}
	l.p.m.d.turns <- struct{}{}
	came := time.Now()
	err = l.worker.Import(ctx, entries)
	took := time.Since(came)
	<-l.p.m.d.turns
	l.p.m.awaited.Add(int64(came.Sub(began)))
	l.p.m.replayed.Add(int64(took))
	if err != nil {
		return got, 0, fmt.Errorf("import what was pulled: %w", err)
	}
	l.p.m.bytes.Add(int64(len(entries)))
	l.p.m.records.Add(int64(got.Records))
	return got, len(entries), nil
}
