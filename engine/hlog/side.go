package hlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// Side is a head beside the order of batches, for records that are safe somewhere
// else until it is closed: those that a migration brings, which their source keeps, and those of
// dead nodes' logs, whose copies are kept.
//
//	NewSide ── appends ── Close
//	              └─ a full segment: written to a file, synced, adopted by the replicator, an ordinary one
//
// Its segments are in memory only until they are closed: who appends waits for no disk, and
// what the file gets it gets at once.
//
// Invariants:
//   - All seals of a side segment have number 0, which no other of a logged log has.
//     So no watermark waits for one, no cut looks at one, and Resume misses none.
//   - What is in a side segment may be shown at once: Stable says so.
//   - Copies of a side segment count from the end of its adoption on. Until then
//     the segment is not at rest: nothing in it is relocated, and its file stays.
//   - It is safe from loss of power before it is adopted. So what copies elsewhere
//     count on is here after any death.
//
// A session of a side only brings records. What it removed would be durable
// much later than those who learn of it are told.
type Side struct {
	log  *Log
	head *Head
	segs []*Segment // that it has closed; belongs to the holder of log.sides.mu
}

// sides is what a log knows of its side heads.
type sides struct {
	births sync.Mutex // held while a side begins; taken before a head's lock, mu after it

	mu    sync.Mutex
	open  map[*Side]struct{}
	queue []*Segment    // closed and not adopted yet, oldest first
	news  chan struct{} // holds one if there may be work
	moved chan struct{} // closed, and replaced, after every attempt
	err   error         // why the last attempt failed
	count atomic.Int32  // of open

	awaited atomic.Int32 // how many wait for adoptions
}

func (s *sides) begin() {
	s.open = map[*Side]struct{}{}
	s.news, s.moved = make(chan struct{}, 1), make(chan struct{})
}

// NewSide opens a side. Its first segment is made by its first append, out of the
// same memory as all others.
func (l *Log) NewSide() (*Side, error) {
	if l.closing.Load() {
		return nil, ErrClosed
	}
	s := &Side{log: l}
	// What its sessions know to be dead is counted with the cleaner's.
	s.head = &Head{log: l, n: len(l.heads) + 1, side: s, dead: l.survivor.dead}
	s.head.trail.oldest.Store(noBatch)
	l.sides.births.Lock()
	defer l.sides.births.Unlock()
	l.sides.mu.Lock()
	defer l.sides.mu.Unlock()
	l.sides.open[s] = struct{}{}
	l.sides.count.Store(int32(len(l.sides.open)))
	return s, nil
}

// Prepare makes memory ready for side segments, at low priority, until there is enough for so many or ctx ends.
// What was not needed is given back when the last of those who are Preparing has ended that.
func (l *Log) Prepare(ctx context.Context, segments int) (err error) {
	background.Quietly(func() {
		err = l.pool.prepare(segments, func() bool { return ctx.Err() == nil && !l.closing.Load() })
	})
	return err
}

// Preparing has memory that was made ready kept until end was called.
func (l *Log) Preparing() (end func()) { return l.pool.promise() }

// OpenSides is how many sides there are that may each be at a segment.
func (l *Log) OpenSides() int { return int(l.sides.count.Load()) }

// Head is where the side is appended to.
func (s *Side) Head() *Head { return s.head }

// Leave hands what was appended by now over to be adopted, and does not wait for it.
func (s *Side) Leave() { s.head.Rotate() }

// Close ends the side: nobody appends to it any more. It returns when all its segments are
// copied as the log's others are, and part of it. What keeps them from that is tried
// again in the background; a Close that was given up may be called again.
func (s *Side) Close(ctx context.Context) error {
	l := s.log
	s.head.Rotate()
	l.sides.mu.Lock()
	delete(l.sides.open, s)
	l.sides.count.Store(int32(len(l.sides.open)))
	l.sides.mu.Unlock()
	if l.opts.Logged && l.opts.Replicator == nil {
		return l.SyncAll()
	}
	return l.awaitAdopted(ctx, s.left)
}

// Flush returns when all that was appended by now is part of the log, as Close does; the side goes on.
func (s *Side) Flush(ctx context.Context) error {
	s.head.Rotate()
	if s.log.opts.Logged && s.log.opts.Replicator == nil {
		return s.log.SyncAll()
	}
	return s.log.awaitAdopted(ctx, s.left)
}

// AwaitSides returns when all side segments that are closed by now are copied as the log's others are, and part of
// it, whosoever they are.
func (l *Log) AwaitSides(ctx context.Context) error {
	l.sides.mu.Lock()
	segs := slices.Clone(l.sides.queue)
	l.sides.mu.Unlock()
	return l.awaitAdopted(ctx, func() (int, <-chan struct{}, error) {
		l.sides.mu.Lock()
		defer l.sides.mu.Unlock()
		segs = slices.DeleteFunc(segs, func(g *Segment) bool { return !g.aside.Load() })
		return len(segs), l.sides.moved, l.sides.err
	})
}

// awaitAdopted waits until no segments are left that are not part of the log.
func (l *Log) awaitAdopted(ctx context.Context, left func() (n int, moved <-chan struct{}, why error)) error {
	l.sides.awaited.Add(1)
	defer l.sides.awaited.Add(-1)
	for {
		left, moved, why := left()
		switch {
		case left == 0:
			return nil
		case l.Err() != nil:
			return l.Err()
		}
		select {
		case <-moved:
		case <-l.stop:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("%d side segments are not copied yet: %w", left, errors.Join(context.Cause(ctx), why))
		}
	}
}

// SidesAwaited tells whether somebody waits until side segments are part of the log.
func (l *Log) SidesAwaited() bool { return l.sides.awaited.Load() > 0 }

// Pending is how many of its segments are closed and not part of the log yet.
func (s *Side) Pending() int {
	n, _, _ := s.left()
	return n
}

func (s *Side) left() (n int, moved <-chan struct{}, why error) {
	all := &s.log.sides
	all.mu.Lock()
	defer all.mu.Unlock()
	s.segs = slices.DeleteFunc(s.segs, func(g *Segment) bool { return !g.aside.Load() })
	return len(s.segs), all.moved, all.err
}

// heads lists the heads of open sides. The caller holds sides.mu.
func (s *sides) heads() (all []*Head) {
	for side := range s.open {
		all = append(all, side.head)
	}
	return all
}

// takeSide makes a segment for a side, if there is room for it now.
func (l *Log) takeSide() (*Segment, error) {
	if l.closing.Load() {
		return nil, ErrClosed
	}
	if l.opts.Room != nil {
		if err := l.opts.Room(false); err != nil {
			return nil, err
		}
	}
	s, err := l.drawSegment()
	if err != nil {
		return nil, err
	}
	if err := l.takeFrame(s); err != nil {
		return nil, errors.Join(err, l.discard(s))
	}
	if l.opts.Logged {
		l.slots.at(s.Slot).setState(stateLogged)
		s.aside.Store(true)
	}
	return s, nil
}

// putSideSeal is putSeal outside of the order. A segment that it closes awaits its
// sync as all others do.
func (h *Head) putSideSeal(room []byte, closed bool) {
	o := &h.log.order
	h.chain.PutSeal(room, 0, closed)
	h.seg.end.Store(h.off)
	if closed {
		o.mu.Lock()
		o.sides = append(o.sides, h.seg)
		o.mu.Unlock()
	}
	h.dead.add(h.seg.Slot, record.SealBytes)
}

// queueSide hands a closed segment to those who see to its adoption. The caller
// holds the head's lock.
func (l *Log) queueSide(side *Side, s *Segment) {
	if l.opts.Replicator == nil {
		return // It is as all others are once it is synced.
	}
	all := &l.sides
	all.mu.Lock()
	side.segs = append(side.segs, s)
	all.queue = append(all.queue, s)
	all.mu.Unlock()
	poke(all.news)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	// adoptAtOnce is how many side segments are adopted together: those that follow
	// shall not wait for their memory until all are.
	adoptAtOnce = 6
	// adoptRest bounds the pause between attempts.
	adoptRest = time.Second
)

// adoptLoop has closed side segments copied, and makes them part of the log.
func (l *Log) adoptLoop() {
	rest := 10 * time.Millisecond
	for {
		if l.sides.backlog() == 0 {
			select {
			case <-l.stop:
				return
			case <-l.sides.news:
			}
			continue
		}
		if !l.awaitCalm(l.sides.backlog, l.sides.news) {
			return
		}
		some := l.sides.first(adoptAtOnce)
		err := l.adoptSides(some)
		l.sides.tried(some, err)
		if err == nil {
			rest = 10 * time.Millisecond
			l.tellReady() // Their memory may be taken.
			continue
		}
		if l.ctx.Err() == nil && l.Err() == nil {
			l.opts.Logger.Warn("side segments could not be copied; it is tried again", "segments", len(some), "error", err)
		}
		if !l.pause(rest) {
			return
		}
		rest = min(2*rest, adoptRest)
	}
}

// adoptSides makes closed side segments part of the log. Those in which nothing is alive,
// as when a migration was called off, need no copies: but what took the place of their
// records does.
func (l *Log) adoptSides(some []*Segment) error {
	if err := l.fileSides(some); err != nil {
		return err
	}
	// While these are copied the next ones get their files.
	var ahead sync.WaitGroup
	defer ahead.Wait()
	if next := l.sides.after(some, adoptAtOnce); len(next) > 0 {
		ahead.Go(func() { _ = l.fileSides(next) }) // It is tried again when it is their turn.
	}
	var live []SourceSegment
	for _, s := range some {
		if l.Live(s) > 0 {
			s.held.Store(true)
			bytes := l.pin(s)
			defer l.unpin(s)
			live = append(live, SourceSegment{ID: s.ID, End: s.End(), Batch: s.batch, Bytes: bytes})
		}
	}
	if len(live) > 0 {
		if err := l.opts.Replicator.Adopt(l.ctx, live...); err != nil {
			return err
		}
	}
	if len(live) < len(some) {
		l.SealAll()
		if !l.awaitCopied(l.Last(), l.stop) {
			return errors.New("what took the place of their records is not copied")
		}
	}
	for _, s := range some {
		s.aside.Store(false)
	}
	return nil
}

// first are the segments to adopt next.
func (s *sides) first(most int) []*Segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queue[:min(most, len(s.queue))])
}

// after are those that follow the first ones.
func (s *sides) after(first []*Segment, most int) []*Segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.queue[min(len(first), len(s.queue)):]
	return slices.Clone(rest[:min(most, len(rest))])
}

// backlog is how many segments are to be adopted.
func (s *sides) backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// tried tells how an attempt to adopt the first of the queue has ended.
func (s *sides) tried(some []*Segment, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.queue = slices.Clone(s.queue[len(some):])
	}
	close(s.moved)
	s.moved = make(chan struct{})
}
