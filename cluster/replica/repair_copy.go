package replica

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// copier makes copies of closed segments that have too few, one after the other and slowly:
// a node that was lost takes many replicas with it, and writers must not feel it.
type copier struct{ news chan struct{} }

func (c *copier) begin() { c.news = make(chan struct{}, 1) }

func (c *copier) wake() { poke(c.news) }

// putTimeout bounds the copy of one segment, which ends on the backup's disk.
const putTimeout = 30 * time.Second

func (p *Primary) copyLoop(ctx context.Context) {
	for {
		m := p.o.Members()
		failed, err := p.copyAll(ctx, m, true)
		var again <-chan time.Time
		if err != nil {
			p.o.Log.Warn("closed segments lack copies; trying again", "segments", failed, "error", err)
			again = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.Changed:
		case <-p.copier.news:
		case <-again:
		}
	}
}

// copyAll copies each closed segment that has too few copies, and says how many it could not.
func (p *Primary) copyAll(ctx context.Context, m Membership, slowly bool) (failed int, last error) {
	lacking := p.thin(m)
	for i, c := range lacking {
		if ctx.Err() != nil {
			return len(lacking) - i, ctx.Err()
		}
		p.mu.Lock()
		p.books.counts.toCopy = len(lacking) - i
		p.mu.Unlock()
		if err := p.thicken(ctx, c, m, &loaded{p: p, c: c}, slowly); err != nil {
			failed, last = failed+1, err
		}
	}
	p.mu.Lock()
	p.books.counts.toCopy = failed
	p.mu.Unlock()
	if len(lacking) > failed {
		p.keeper.wake() // Perhaps a dead node is not needed any more.
	}
	return failed, last
}

// thin lists closed segments that could have more copies.
func (p *Primary) thin(m Membership) []*closedSegment {
	want := min(p.o.Copies, len(p.usable(m.Living)))
	p.mu.Lock()
	defer p.mu.Unlock()
	want = max(want, p.books.copies)
	var all []*closedSegment
	for _, c := range p.books.closed {
		if len(c.holders) < want && !c.adopting {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *closedSegment) int { return len(a.holders) - len(b.holders) })
	return all
}

// thicken gives a segment the copies that it lacks, of what is read.
func (p *Primary) thicken(ctx context.Context, c *closedSegment, m Membership, read *loaded, slowly bool) error {
	usable, unheard := p.usable(m.Living), p.unheard(m.Living)
	p.mu.Lock()
	candidates := p.books.placer.choose(usable, c.holders)
	if len(candidates) < p.books.copies-len(c.holders) {
		candidates = append(candidates, p.books.placer.choose(unheard, c.holders)...)
	}
	slices.SortStableFunc(candidates, func(a, b Member) int { return rank(c.partly, a.ID) - rank(c.partly, b.ID) })
	p.mu.Unlock()
	err := fmt.Errorf("segment %d: nobody can take a copy", c.id)
	defer read.free()
	for len(candidates) > 0 {
		lacks := p.lacks(c, usable)
		if lacks == 0 {
			return nil
		}
		if slowly {
			lacks = 1
		}
		some := candidates[:min(lacks, len(candidates))]
		candidates = candidates[len(some):]
		e := p.putAll(ctx, read, some)
		err = errors.Join(err, e)
		if slowly && e == nil {
			p.rest(ctx, int(c.End))
		}
	}
	if p.lacks(c, usable) == 0 {
		return nil
	}
	return err
}

// lacks is how many copies a segment should have more; none if it was dropped.
func (p *Primary) lacks(c *closedSegment, usable []Member) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.books.closed[c.id] != c {
		return 0
	}
	return max(0, min(p.o.Copies, max(len(usable), p.books.copies))-len(c.holders))
}

// putAll makes copies at some nodes at once.
func (p *Primary) putAll(ctx context.Context, read *loaded, at []Member) error {
	errs := make([]error, len(at))
	var all sync.WaitGroup
	for i, n := range at {
		all.Go(func() {
			if errs[i] = p.putAt(ctx, read, n.ID); errs[i] != nil {
				p.avoid(n.ID, false, errs[i])
				return
			}
			p.welcome(n.ID)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// rest keeps copying within its bound.
func (p *Primary) rest(ctx context.Context, bytes int) {
	if p.o.CopyBytesPerSecond < 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(bytes) * time.Second / time.Duration(p.o.CopyBytesPerSecond)):
	}
}

// loaded is the bytes of a segment, read when they are first needed.
type loaded struct {
	mu    sync.Mutex // held while they are read
	p     *Primary
	c     *closedSegment
	lent  []byte // where they lie, if they are at hand; not to be freed
	bytes []byte
	whole bool // all entries were checked

	patient bool // nobody waits for its copies

	loan  *loan       // where bytes are if backups of this machine can read them there
	doubt atomic.Bool // one of that was not answered: a backup may still read it
}

// load reads and checks them.
func (l *loaded) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes != nil {
		return nil
	}
	p, c := l.p, l.c
	b, err := l.lent, error(nil)
	if b == nil {
		b, err = p.source.Load(c.id)
	}
	if err != nil {
		return fmt.Errorf("read segment %d to copy it: %w", c.id, err)
	}
	l.bytes = b
	defer func() {
		if err != nil {
			l.free()
		}
	}()
	if len(b) < int(c.End) {
		err = fmt.Errorf("read segment %d to copy it: it has %d bytes of %d", c.id, len(b), c.End)
		return err
	}
	l.bytes = b[:c.End]
	if l.lent != nil {
		l.loan = l.p.lent.take()
	}
	var sum uint32
	inTurn(l.patient, func(rest func()) { sum, err = l.check(rest) })
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.summed { // Else it is what others read without the lock.
		c.Sum, c.summed = sum, true
	}
	if c.Sum != sum {
		err = fmt.Errorf("segment %d is not what it was: its own copy is damaged", c.id)
	}
	return err
}

// inTurn does the work of a copy when it is its turn. A copy that nobody waits for has what others leave of the cores.
func inTurn(patient bool, f func(rest func())) {
	if patient {
		background.InTurnHumbly(f)
	} else {
		background.InTurn(f)
	}
}

// check sums up what was read. What others sent, and nobody has looked at since, is checked entry by entry, once for all
// copies.
func (l *loaded) check(rest func()) (sum uint32, err error) {
	b := l.bytes
	if l.loan != nil {
		b = l.loan.memory.Bytes()[:len(b)]
	}
	for at := 0; at < len(b); at += background.Piece {
		piece := b[at:min(at+background.Piece, len(b))]
		if l.loan != nil {
			copy(piece, l.bytes[at:])
		}
		sum = crc32.Update(sum, castagnoli, piece)
		rest()
	}
	l.bytes = b
	if l.lent == nil {
		return sum, nil
	}
	if err := verifyEntries(b, l.p.source.LogID, l.c.id, l.c.Closing, record.ScanOptions{Between: rest}); err != nil {
		return 0, fmt.Errorf("segment %d cannot be copied: %w", l.c.id, err)
	}
	l.whole = true
	return sum, nil
}

// free gives their memory back. Nobody reads them any more.
func (l *loaded) free() {
	if l.bytes != nil && l.lent == nil && l.p.source.Free != nil {
		l.p.source.Free(l.bytes)
	}
	if l.loan != nil {
		l.p.lent.giveBack(l.loan, l.doubt.Load())
	}
	l.bytes, l.loan = nil, nil
}

// putAt makes one copy.
func (p *Primary) putAt(ctx context.Context, read *loaded, node view.NodeID) error {
	if err := p.addBackup(ctx, node); err != nil {
		return err
	}
	if err := read.load(); err != nil {
		return err
	}
	c := read.c
	p.mu.Lock()
	closing := c.Closing
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	request := PutRequest{Log: p.source.LogID, Segment: c.id, Closing: closing, Checked: read.whole, Patient: read.patient, Roster: p.roster()}
	if !request.Roster.Segments.Contains(uint64(c.id)) {
		return nil // It was dropped meanwhile.
	}
	if err := p.put(ctx, node, request, read); err != nil {
		return fmt.Errorf("copy segment %d: %w", c.id, err)
	}
	p.storedRoster(&request.Roster)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stillBackup(node); err != nil {
		return fmt.Errorf("copy segment %d: %w", c.id, err)
	}
	c.join(node)
	c.partly = slices.DeleteFunc(c.partly, func(n view.NodeID) bool { return n == node })
	if !c.adopting {
		p.books.counts.copied++
		p.books.counts.copiedBytes += uint64(c.End)
	}
	return nil
}

// put has a backup take a copy from memory that both have, or over the wire.
func (p *Primary) put(ctx context.Context, node view.NodeID, request PutRequest, read *loaded) error {
	if _, remote := p.remote.Load(node); read.loan != nil && !remote {
		request.Share = &read.loan.share
		_, err := p.call(ctx, node, MethodPut, request, nil, nil)
		if !errors.Is(err, ErrInvalid) {
			if err != nil {
				read.doubt.Store(true)
			}
			return err
		}
		p.remote.Store(node, true)
		request.Share = nil
	}
	_, err := p.call(ctx, node, MethodPut, request, read.bytes, nil)
	return err
}
