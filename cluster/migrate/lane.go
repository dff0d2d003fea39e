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
// its partitions one question is under way: while what one brought is replayed the others are on their way, and neither end waits
// for the other's processor.
type lane struct {
	*puller
	p     *pulls
	most  int // partitions
	under []*partition
	land  *landing // nil: entries come over the wire
	got   []landed // of the last answer
}

// partition is a piece, and how far it was pulled.
type partition struct {
	piece  view.Range
	cursor store.PullCursor
	slot   uint32 // the first of its row in the landing, if there is one, while a lane has it
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
	var work background.Diligence
	work.Piece()
	l.prepare(ctx)
	err := l.fill(ctx)
	for err == nil && len(l.under) > 0 {
		work.Piece()
		err = l.once(ctx)
	}
	for _, at := range l.under {
		l.p.leave(at)
	}
	l.under = nil
	l.dropLanding(ctx, err == nil)
	l.soon.drop()
	return err
}

// prepare has the source write entries to memory of this node, if both are on one machine.
func (l *lane) prepare(ctx context.Context) {
	if !l.p.m.o.SharedMemory {
		return
	}
	land, err := newLanding(l.most, l.p.m.o.PullBytes)
	if err == nil {
		if _, err = l.line.Call(l.soon.within(ctx), methodLand, land.ask(l.p.m.id, false), nil, nil); err != nil {
			_ = land.memory.Close()
		}
	}
	if err != nil {
		l.p.m.log.Debug("entries come over the wire", "why", err)
		return
	}
	l.land = land
}

// dropLanding gives the landing back, and tells the source if it can be told.
func (l *lane) dropLanding(ctx context.Context, tell bool) {
	if l.land == nil {
		return
	}
	if tell {
		_, err := l.line.Call(l.soon.within(ctx), methodLand, l.land.ask(l.p.m.id, true), nil, nil)
		if err != nil {
			l.p.m.log.Debug("the source keeps memory for entries for a while", "why", err)
		}
	}
	_ = l.land.memory.Close()
	l.land = nil
}

// fill begins as many partitions as there may be.
func (l *lane) fill(ctx context.Context) error {
	for len(l.under) < l.most {
		at, ok := l.p.next()
		if !ok {
			return nil
		}
		if l.land != nil {
			at.slot = l.land.take()
		}
		if err := l.ask(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// ask sends the next question of a partition. It counts as under way even if that fails.
func (l *lane) ask(ctx context.Context, at *partition) error {
	l.under = append(l.under, at)
	q := pull{
		ID: l.p.m.id, Range: at.piece, Cursor: at.cursor, Bytes: uint32(l.p.m.o.PullBytes),
		Since: l.p.log.since, Life: l.p.log.life, Indirect: l.p.m.want.Options.Indirect(),
	}
	if l.land != nil {
		into := pullInto{pull: q, Landing: markOf(l.land.share), Slot: at.slot, Pulls: uint32(l.land.row)}
		l.head = into.encode(l.head)
		return l.line.Send(l.soon.within(ctx), methodPullInto, l.head, nil)
	}
	l.head = q.encode(l.head)
	return l.line.Send(l.soon.within(ctx), methodPull, l.head, nil)
}

// once takes the answer to the oldest question, replays it, and sends the next of the same partition.
func (l *lane) once(ctx context.Context) error {
	at := l.under[0]
	bytes, err := l.replay(ctx, at)
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
	l.p.m.advances.Add(1)
	if last := &l.got[len(l.got)-1]; !last.all() {
		at.cursor = last.Cursor
		return l.ask(ctx, at)
	}
	if l.land != nil {
		l.land.leave(at.slot)
	}
	background.Aloud(func() { l.p.m.arrival.Pulled(store.Range(at.piece)) })
	return l.fill(ctx)
}

// replay waits for an answer and imports what it brings.
func (l *lane) replay(ctx context.Context, at *partition) (bytes int, err error) {
	began := time.Now()
	bulk, err := l.receive(ctx)
	var cold []store.Indirection
	if err == nil {
		bulk, cold, err = l.got[len(l.got)-1].split(bulk)
	}
	if err == nil && len(cold) > 0 {
		background.Aloud(func() { err = l.worker.Refer(cold) })
	}
	if err != nil {
		return 0, err
	}
	l.p.m.d.turns <- struct{}{}
	came := time.Now()
	inMemory, err := l.importLanded(ctx, at)
	if err == nil {
		err = l.worker.Import(ctx, bulk)
	}
	took := time.Since(came)
	<-l.p.m.d.turns
	l.p.m.awaited.Add(int64(came.Sub(began)))
	l.p.m.replayed.Add(int64(took))
	if err != nil {
		return 0, fmt.Errorf("import what was pulled: %w", err)
	}
	bytes = inMemory + len(bulk)
	l.p.m.bytes.Add(int64(bytes))
	l.p.m.landed.Add(int64(inMemory))
	for i := range l.got {
		l.p.m.records.Add(int64(l.got[i].Records))
	}
	return bytes, nil
}

// importLanded imports what has landed.
func (l *lane) importLanded(ctx context.Context, at *partition) (bytes int, err error) {
	if l.land == nil {
		return 0, nil
	}
	for i := range l.got {
		here, err := l.land.landed(at.slot+uint32(i), l.got[i].Bytes)
		if err == nil {
			err = l.worker.ImportKnown(ctx, here.entries, here.known)
		}
		if err != nil {
			return bytes, err
		}
		bytes += len(here.entries)
	}
	return bytes, nil
}

// receive waits for the answer to a question, and notes what it says of its pulls. The bulk is what has not landed.
func (l *lane) receive(ctx context.Context) (bulk []byte, err error) {
	head, bulk, err := l.line.Receive(l.soon.within(ctx))
	l.got = l.got[:0]
	switch {
	case err != nil:
	case l.land == nil:
		var one landed
		err = one.pulled.decode(head)
		l.got = append(l.got, one)
	default:
		l.got, err = landedOf(head, l.land.row, l.got)
	}
	return bulk, err
}
