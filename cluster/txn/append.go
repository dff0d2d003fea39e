package txn

import (
	"context"
	"fmt"

	"github.com/ostrodb/ostro/cluster/group"
)

// Pending is a record on its way into all logs, and then into all data.
type Pending struct {
	log      *Log
	pos, end uint64
	moves    []move
	last     *group.Pending // the gWRITE that ends the record; all before it end earlier
	executed chan struct{}
}

// Wait returns when all replicas have the record on their media, or ctx is over;
// then it goes on. After an error of the group nobody knows yet: Initialize decides.
func (p *Pending) Wait(ctx context.Context) error {
	_, err := p.last.Wait(ctx)
	return err
}

// WaitExecuted returns when the record is in the data area of all replicas. It
// executes nothing itself: see ExecuteAndAdvance and Config.Background.
func (p *Pending) WaitExecuted(ctx context.Context) error {
	select {
	case <-p.executed:
		return nil
	case <-p.log.ctx.Done():
	case <-p.log.group.Broken():
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.log.Err()
}

// Append puts a record of entries into the log of every replica, and returns
// when it is on its way: many can be. The caller may use the data again at once.
// When the log is full, Append waits for room, executing the oldest records
// if no background executor does. A record is all or nothing, whatever happens.
func (l *Log) Append(ctx context.Context, entries ...Entry) (*Pending, error) {
	if err := l.layout.checkEntries(entries); err != nil {
		return nil, err
	}
	if err := l.appending.lock(ctx); err != nil {
		return nil, err
	}
	defer l.appending.unlock()
	if err := l.makeRoom(ctx, sizeOf(entries)); err != nil {
		return nil, err
	}
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.runs.Done()
	pos := l.tail // Only appenders change it.
	bytes, moves := encode(pos, l.epoch, entries)
	p := &Pending{log: l, pos: pos, end: pos + uint64(len(bytes)), moves: moves, executed: make(chan struct{})}
	// From here on the caller's ctx has no say: half a record would be a hole in the log.
	var err error
	if p.last, err = l.put(pos, bytes); err != nil {
		err = fmt.Errorf("txn: append at %d: %w", pos, err)
		l.fail(err)
		return nil, err
	}
	l.enqueue(p)
	return p, nil
}

// AppendWait is Append and Wait.
func (l *Log) AppendWait(ctx context.Context, entries ...Entry) error {
	p, err := l.Append(ctx, entries...)
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// put writes a record's bytes around the ring.
func (l *Log) put(pos uint64, bytes []byte) (last *group.Pending, err error) {
	for _, s := range l.layout.ring(pos, uint64(len(bytes))) {
		if last, err = writeAll(l.ctx, l.group, s.off, bytes[:s.n]); err != nil {
			return nil, err
		}
		bytes = bytes[s.n:]
	}
	return last, nil
}

// writeAll is as many durable gWRITEs as the group wants; the last one ends last.
func writeAll(ctx context.Context, g *group.Group, off uint64, bytes []byte) (last *group.Pending, err error) {
	for len(bytes) > 0 {
		n := min(len(bytes), g.MaxWrite())
		if last, err = g.Write(ctx, off, bytes[:n], group.Durable); err != nil {
			return nil, err
		}
		off, bytes = off+uint64(n), bytes[n:]
	}
	return last, nil
}

// makeRoom returns when size bytes fit between tail and head.
func (l *Log) makeRoom(ctx context.Context, size uint64) error {
	for {
		full, moved, err := l.full(size)
		if err != nil || !full {
			return err
		}
		if !l.conf.Background {
			if _, err := l.ExecuteAndAdvance(ctx); err != nil {
				return err
			}
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.group.Broken():
			return l.Err()
		}
	}
}

func (l *Log) full(size uint64) (bool, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail+size-l.head > l.layout.logBytes, l.moved, l.err
}

func (l *Log) enqueue(p *Pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = p.end
	l.queue = append(l.queue, p)
	select {
	case l.work <- struct{}{}:
	default:
	}
}
