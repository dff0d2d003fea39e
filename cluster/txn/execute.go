package txn

import (
	"context"
	"fmt"

	"github.com/ostrodb/ostro/cluster/group"
)

// ExecuteAndAdvance executes the oldest records, up to Config.Batch of them: on
// every replica their data is copied from log to data area and flushed, and then
// the head moves behind them and their room is free. It tells how many; none
// means that the log was empty. A record that is still on its way is waited for.
//
// It takes no lock: who lets others read meanwhile holds the write locks of what
// the records change. Whether it was cut short or not, executing again is harmless.
func (l *Log) ExecuteAndAdvance(ctx context.Context) (int, error) {
	if err := l.executing.lock(ctx); err != nil {
		return 0, err
	}
	defer l.executing.unlock()
	batch, err := l.oldest()
	if err != nil || len(batch) == 0 {
		return 0, err
	}
	if err := batch[len(batch)-1].Wait(ctx); err != nil {
		return 0, err
	}
	if err := l.enter(); err != nil {
		return 0, err
	}
	defer l.runs.Done()
	if err := l.execute(batch); err != nil {
		err = fmt.Errorf("txn: execute from %d on: %w", batch[0].pos, err)
		l.fail(err)
		return 0, err
	}
	l.advance(batch)
	return len(batch), nil
}

// Drain executes all that was appended before the call.
func (l *Log) Drain(ctx context.Context) error {
	l.mu.Lock()
	until := l.tail
	l.mu.Unlock()
	return l.executeThrough(ctx, until)
}

// executeThrough returns when all replicas have executed up to a position.
func (l *Log) executeThrough(ctx context.Context, until uint64) error {
	for {
		l.mu.Lock()
		head := l.head
		l.mu.Unlock()
		if head >= until {
			return nil
		}
		if _, err := l.ExecuteAndAdvance(ctx); err != nil {
			return err
		}
	}
}

// oldest is the batch that is next.
func (l *Log) oldest() ([]*Pending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	return l.queue[:min(len(l.queue), l.conf.Batch)], nil
}

// execute moves data and head on all replicas. All of it is in flight at once; replicas keep the order.
func (l *Log) execute(batch []*Pending) error {
	for _, p := range batch {
		if l.changed != nil {
			for _, m := range p.moves {
				l.changed.mark(m.to, m.n)
			}
		}
		if err := copyMoves(l.ctx, l.group, l.layout, p.moves); err != nil {
			return err
		}
	}
	all, from, to := group.First(l.group.Replicas()), batch[0].pos, batch[len(batch)-1].end
	p, err := l.group.CAS(l.ctx, headAt, from, to, all, group.Durable)
	if err != nil {
		return err
	}
	r, err := p.Wait(l.ctx)
	if err != nil {
		return err
	}
	if r.Swapped(from) != all {
		return fmt.Errorf("%w: heads are %d, not %d", ErrDiverged, r.Found[:l.group.Replicas()], from)
	}
	return nil
}

// copyMoves has every replica copy from its log to its data.
func copyMoves(ctx context.Context, g *group.Group, l layout, moves []move) error {
	for _, m := range moves {
		to := l.data() + m.to
		for _, s := range l.ring(m.from, m.n) {
			if _, err := g.Copy(ctx, to, s.off, s.n, group.Durable); err != nil {
				return err
			}
			to += s.n
		}
	}
	return nil
}

// advance frees the room of an executed batch and tells who waits for it.
func (l *Log) advance(batch []*Pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = batch[len(batch)-1].end
	for _, p := range batch {
		close(p.executed)
	}
	l.queue = append([]*Pending(nil), l.queue[len(batch):]...)
	l.wake()
}

// background executes records as they come, until the log ends.
func (l *Log) background() {
	defer l.runs.Done()
	for {
		select {
		case <-l.work:
		case <-l.ctx.Done():
			return
		case <-l.group.Broken():
			return
		}
		for n := 1; n > 0; {
			var err error
			if n, err = l.ExecuteAndAdvance(l.ctx); err != nil {
				l.fail(err)
				return
			}
		}
	}
}
