package hlog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ostrodb/ostro/engine/record"
)

// Segments of a log with a replicator are open elsewhere before a head takes
// them. That takes an answer, so it is done here, in the background: heads take
// what is ready, or their writes wait.

const (
	// reserveSegments are kept for the cleaner and for deletions when memory is
	// full, out of nobody's share.
	reserveSegments = 2
	// openRest bounds the pause between attempts to open a segment.
	openRest = time.Second
	// closePatience is how long Close waits for copies, and dropPatience for others to
	// drop theirs of segments that were never used.
	closePatience = 3 * time.Second
	dropPatience  = time.Second
)

// spareSegments is how many segments are kept ready. With a replicator all
// heads may need one at once, as after a checkpoint.
func spareSegments(o *Options) int {
	if o.Replicator == nil {
		return 2
	}
	return max(2, o.Heads+1)
}

// Overhead is how many segments of memory the log takes beside those that it
// was written to: spares, and what it keeps for need.
func (l *Log) Overhead() int {
	n := cap(l.spares)
	if l.opts.Replicator != nil {
		n += reserveSegments + 2 // One each is on its way.
	}
	return n
}

func (l *Log) spawnSpares() {
	if l.opts.Replicator == nil {
		l.spawn(l.prepareSpares)
		return
	}
	l.spawn(func() { l.prepareOpened(l.spares, l.waitForRoom) })
	l.spawn(func() { l.prepareOpened(l.reserve, func() error { return nil }) })
}

func (l *Log) waitForRoom() error {
	if l.opts.Room == nil {
		return nil
	}
	return l.opts.Room(true)
}

// prepareOpened keeps segments ready that are open elsewhere, when there is room
// for one more.
func (l *Log) prepareOpened(ready chan<- *Segment, room func() error) {
	for {
		s, err := l.makeWith(room)
		if err != nil {
			if !l.pause(20 * time.Millisecond) {
				return
			}
			continue
		}
		if !l.openElsewhere(s) {
			l.unused.add(s)
			return
		}
		select {
		case ready <- s:
			l.tellReady()
		case <-l.stop:
			l.unused.add(s)
			return
		}
	}
}

// makeWith makes a segment when there is room for it. What keeps the machine
// from making one is told to those who wait for it.
func (l *Log) makeWith(room func() error) (*Segment, error) {
	if err := room(); err != nil {
		return nil, err
	}
	s, err := l.makeSegment()
	l.attempted(err)
	if err != nil {
		l.tellReady()
		return nil, err
	}
	return s, nil
}

// openElsewhere opens s at the replicator, however long that takes; false if the
// log ends first.
func (l *Log) openElsewhere(s *Segment) bool {
	s.held.Store(true)
	l.mu.Lock()
	memory := s.mapping
	l.mu.Unlock()
	for rest := 10 * time.Millisecond; ; rest = min(2*rest, openRest) {
		err := l.opts.Replicator.Open(l.ctx, s.ID, memory)
		if err == nil {
			return true
		}
		if l.ctx.Err() == nil && l.Err() == nil {
			l.opts.Logger.Warn("no room for copies of a new segment; it is tried again", "segment", s.ID, "error", err)
		}
		if !l.pause(rest) {
			return false
		}
	}
}

// tellReady says that a segment is ready.
func (l *Log) tellReady() {
	if l.opts.Ready != nil {
		l.opts.Ready()
	}
}

// takeReserve gives a segment for what must be written to make room.
func (l *Log) takeReserve() (*Segment, error) {
	if l.opts.Replicator == nil {
		return l.makeSegment()
	}
	select {
	case s := <-l.reserve:
		return s, nil
	default:
		return nil, l.notReady()
	}
}

// notReady tells why no segment is ready: one is on its way, or none will come.
// Nobody waits for it under a lock.
func (l *Log) notReady() error {
	if err := l.Shortage(); err != nil {
		return err
	}
	return ErrNoRoom
}

// HasReserve tells whether what must be written to make room can be.
func (l *Log) HasReserve() bool { return l.opts.Replicator == nil || len(l.reserve) > 0 }

// Drop tells the replicator that segments are no longer part of the log: they are
// at rest, and nothing in them is alive. When it returns they may be removed.
func (l *Log) Drop(ctx context.Context, segs ...*Segment) error {
	var ids []record.SegmentID
	for _, s := range segs {
		if s.held.Load() {
			ids = append(ids, s.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := l.opts.Replicator.Drop(ctx, ids...); err != nil {
		return err
	}
	for _, s := range segs {
		s.held.Store(false)
	}
	return nil
}

// Held tells whether copies of the segment elsewhere may count as part of the
// log, so that it cannot be removed.
func (s *Segment) Held() bool { return s.held.Load() }

// unused are segments that were prepared in vain.
type unused struct {
	mu   sync.Mutex
	segs []*Segment
}

func (u *unused) add(s *Segment) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.segs = append(u.segs, s)
}

// discardSpares removes the segments that nobody took. Those whose copies are
// not dropped stay: they are empty, and the next life removes them.
func (l *Log) discardSpares() error {
	all := l.unused.segs
	for _, ready := range []chan *Segment{l.spares, l.reserve} {
		for len(ready) > 0 {
			all = append(all, <-ready)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropPatience)
	defer cancel()
	if l.Last() > l.Copied() {
		cancel() // Nobody answered until now.
	}
	if err := l.Drop(ctx, all...); err != nil {
		l.opts.Logger.Warn("copies of unused segments were not dropped; the next start does that", "segments", len(all), "error", err)
		return nil
	}
	var errs []error
	for _, s := range all {
		errs = append(errs, l.discard(s))
	}
	return errors.Join(errs...)
}

// awaitCopies waits a while for copies of all that is sealed.
func (l *Log) awaitCopies() {
	if !l.copies.begun {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	if last := l.Last(); !l.awaitCopied(last, ctx.Done()) {
		l.opts.Logger.Warn("the log closes before all of it is copied; what is missing was not acknowledged, and the next start copies it",
			"copied", l.Copied(), "sealed", last)
	}
}

// closeReplicator ends the replicator.
func (l *Log) closeReplicator() error {
	if l.opts.Replicator == nil {
		return nil
	}
	return l.opts.Replicator.Close()
}
