package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ostrodb/ostro/cluster/group"
)

// ErrMoved says that the log was given to a larger group: initialize that, and try again there.
var ErrMoved = errors.New("txn: moved to another group")

// CopyTo makes the replicas of another group, a spare one, members of this: in steps, while
// transactions and readers go on, and again what changed meanwhile. Then it stops
// new transactions with ErrMoved, waits for those in the log, copies the rest, and
// returns. The spare replicas have everything then, and no transaction is in no log.
//
// The caller closes log and both groups, opens one of all replicas and initializes
// it, which copies nothing any more. Reads on the old log go on until it is closed.
// If CopyTo fails before it has stopped transactions, they go on; Err tells. One
// copy at a time: a second one is ErrRefused.
func (l *Log) CopyTo(ctx context.Context, spare *group.Group, progress func(done, total uint64)) error {
	c := &copier{log: l, spare: spare, progress: progress, changed: newPages(l.DataBytes())}
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("txn: copy to new members: %w", err)
	}
	return nil
}

// copier brings spare replicas up to date with a log in use. Data that is executed while
// it is read may be read in part: it is marked before, and so copied again. Marks are
// taken between two executions only: what has been taken is executed, and can be read.
type copier struct {
	log      *Log
	spare    *group.Group
	progress func(done, total uint64)
	changed  *pages
}

const (
	pageBytes = 16 << 10
	catchUps  = 8  // rounds while transactions go on
	fewPages  = 16 // so few that transactions can wait for them
)

func (c *copier) run(ctx context.Context) error {
	if err := c.watch(ctx); err != nil {
		return err
	}
	defer c.unwatch()
	if err := c.begin(ctx); err != nil {
		return err
	}
	all := newPages(c.log.DataBytes())
	all.mark(0, c.log.DataBytes())
	if err := c.copyPages(ctx, all.take(), c.progress); err != nil {
		return err
	}
	for range catchUps {
		few, err := c.take(ctx)
		if err != nil {
			return err
		}
		if err := c.copyPages(ctx, few, nil); err != nil {
			return err
		}
		if len(few) <= fewPages {
			break
		}
	}
	return c.finish(ctx)
}

// begin says that the spare replicas are incomplete, and empties their logs.
func (c *copier) begin(ctx context.Context) error {
	if c.spare.Bytes() != c.log.group.Bytes() {
		return fmt.Errorf("%w: the new members have %d bytes, not %d", ErrRefused, c.spare.Bytes(), c.log.group.Bytes())
	}
	r := &recovery{group: c.spare, layout: c.log.layout, conf: Config{}}
	for i := range c.spare.Replicas() {
		p := &replica{index: i}
		if err := r.look(ctx, p); err != nil {
			return err
		}
		if err := r.swapAll(ctx, "the magic", magicAt, p.control.magic, incomplete, p.one()); err != nil {
			return err
		}
	}
	return r.write(ctx, r.layout.log(), make([]byte, r.layout.logBytes))
}

// watch has executed data marked, from now on.
func (c *copier) watch(ctx context.Context) error {
	if err := c.log.executing.lock(ctx); err != nil {
		return err
	}
	defer c.log.executing.unlock()
	if c.log.changed != nil {
		return fmt.Errorf("%w: another copy is under way; wait for its end, or copy to all new members at once", ErrRefused)
	}
	c.log.changed = c.changed
	return nil
}

func (c *copier) unwatch() {
	if c.log.executing.lock(context.Background()) == nil {
		defer c.log.executing.unlock()
		c.log.changed = nil
	}
}

// take is the pages that were marked, when no execution is under way.
func (c *copier) take(ctx context.Context) ([]uint64, error) {
	if err := c.log.executing.lock(ctx); err != nil {
		return nil, err
	}
	defer c.log.executing.unlock()
	return c.changed.take(), nil
}

func (c *copier) copyPages(ctx context.Context, list []uint64, progress func(done, total uint64)) error {
	l, buf, total := c.log, make([]byte, pageBytes), uint64(len(list))*pageBytes
	var last *group.Pending
	for i, page := range list {
		at := page * pageBytes
		step := buf[:min(pageBytes, l.DataBytes()-at)]
		if err := l.Read(ctx, l.group.Replicas()-1, at, step); err != nil {
			return err
		}
		var err error
		if last, err = writeAll(ctx, c.spare, l.DataOffset()+at, step); err != nil {
			return err
		}
		if progress != nil {
			progress(uint64(i+1)*pageBytes, total)
		}
	}
	if last == nil {
		return nil
	}
	_, err := last.Wait(ctx)
	return err
}

// finish stops transactions, copies what is left and makes the spare replicas members.
func (c *copier) finish(ctx context.Context) error {
	l := c.log
	if err := l.appending.lock(ctx); err != nil {
		return err
	}
	defer l.appending.unlock()
	if err := l.Drain(ctx); err != nil {
		return err
	}
	l.fail(ErrMoved)
	rest, err := c.take(ctx)
	if err != nil {
		return err
	}
	if err := c.copyPages(ctx, rest, nil); err != nil {
		return err
	}
	r := &recovery{group: c.spare, layout: l.layout, epoch: l.epoch, end: l.tail}
	return r.admit(ctx, r.all())
}

// pages is a set of parts of the data area.
type pages struct {
	mu   sync.Mutex
	bits []uint64
}

func newPages(bytes uint64) *pages {
	return &pages{bits: make([]uint64, (bytes+64*pageBytes-1)/(64*pageBytes))}
}

// mark puts all pages that have some of n bytes at off into the set.
func (p *pages) mark(off, n uint64) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for page := off / pageBytes; page <= (off+n-1)/pageBytes; page++ {
		p.bits[page/64] |= 1 << (page % 64)
	}
}

// take empties the set.
func (p *pages) take() (list []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, word := range p.bits {
		for bit := range uint64(64) {
			if word>>bit&1 == 1 {
				list = append(list, uint64(i)*64+bit)
			}
		}
		p.bits[i] = 0
	}
	return list
}
