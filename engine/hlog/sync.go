package hlog

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// syncLoop makes sealed batches safe from loss of power: every second, or as
// soon as somebody waits for it. One sync serves all that was sealed before it.
func (l *Log) syncLoop() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	sides := true
	for {
		select {
		case <-l.stop:
			return
		case <-l.syncAsk:
		case <-tick.C:
			sides = true
		}
		_ = l.syncHeads() // Err tells all who ask.
		if sides {
			sides = l.syncSides() == nil // On a full disk not as often as somebody asks.
		}
		l.wakeWaiters()
	}
}

// AskSync starts a sync of what is sealed, in the background.
func (l *Log) AskSync() {
	select {
	case l.syncAsk <- struct{}{}:
	default:
	}
}

// syncError is the failure that ended all syncing, if there was one.
func (l *Log) syncError() error {
	if e := l.syncErr.Load(); e != nil {
		return *e
	}
	return nil
}

// Sync makes all that is sealed durable, and returns when it is. Side segments are safe elsewhere: see SyncAll.
func (l *Log) Sync() error {
	if !l.opts.Logged {
		return nil
	}
	return l.syncHeads()
}

// SyncAll is Sync of closed side segments, too. What keeps those from their files, as a full disk does, may pass: then it may be
// called again.
func (l *Log) SyncAll() error {
	if !l.opts.Logged {
		return nil
	}
	return errors.Join(l.syncHeads(), l.syncSides())
}

func (l *Log) syncHeads() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := l.syncError(); err != nil {
		return err
	}
	l.syncs.Add(1)
	heads := l.allHeads()
	last, reaches := l.reached(heads)
	err := l.syncReached(heads, reaches)
	if err == nil {
		err = l.settled(heads, reaches)
	}
	if err == nil {
		// Last, for whoever sees it may remove the segments that were just cut.
		l.synced.Store(uint64(last))
	}
	if err != nil && l.syncErr.CompareAndSwap(nil, &err) {
		l.fail(&failure{err, fmt.Errorf("nothing can be written after a failed sync; restart when the disk is well: %w", err)})
		l.opts.Logger.Error("sync failed: writes are refused until restart", "error", err)
	}
	return err
}

// syncSides gives closed side segments their files, and makes them safe from loss of power. No batch depends on them, and what could not be
// written is in memory and safe elsewhere, as before. So one that fails ends nothing: it is tried again.
func (l *Log) syncSides() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := l.syncError(); err != nil {
		return err
	}
	some := l.order.takeSides()
	var left []*Segment
	var errs []error
	for _, s := range some {
		err := l.flushClosed(s)
		if err == nil {
			err = l.cutClosed(s)
		}
		switch {
		case err != nil:
			left, errs = append(left, s), append(errs, err)
		case l.opts.Replicator == nil:
			s.aside.Store(false)
		}
	}
	l.order.putBackSides(left)
	return errors.Join(errs...)
}

func each(segs []*Segment, f func(*Segment) error) error {
	var errs []error
	for _, s := range segs {
		errs = append(errs, f(s))
	}
	return errors.Join(errs...)
}

// syncReached syncs all files that hold what the heads have reached.
func (l *Log) syncReached(heads []*Head, reaches []reach) error {
	var errs []error
	for i, r := range reaches {
		for _, s := range r.closed {
			errs = append(errs, l.flushClosed(s))
		}
		if r.open != nil && heads[i].syncedTo.Load() < r.pos {
			errs = append(errs, r.open.file.Sync())
		}
	}
	return errors.Join(errs...)
}

// settled tells everybody how far all heads are synced, and cuts the files of
// closed segments. It comes after all syncs: a batch counts only with all before
// it, and a file that is cut says that all up to its last are there.
func (l *Log) settled(heads []*Head, reaches []reach) error {
	var errs []error
	for i, r := range reaches {
		for _, s := range r.closed {
			errs = append(errs, l.cutClosed(s))
		}
		if r.open != nil {
			l.noteSynced(r.open, r.off)
		}
		heads[i].syncedTo.Store(r.pos)
	}
	return errors.Join(errs...)
}

// flushClosed makes the bytes of a closed segment safe from loss of power.
func (l *Log) flushClosed(s *Segment) error {
	if err := l.fileSide(s); err != nil {
		return err
	}
	return l.flushFile(s)
}

// flushFile is flushClosed of a segment that has its file.
func (l *Log) flushFile(s *Segment) error {
	l.mu.Lock()
	done, file := s.flushed || s.gone, s.file
	l.mu.Unlock()
	if done {
		return nil
	}
	if err := file.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.flushed = true
	return nil
}

// cutClosed cuts the file of a closed segment to its end, which marks it for
// recovery: all batches up to its last are safe from loss of power.
func (l *Log) cutClosed(s *Segment) error {
	l.mu.Lock()
	done, file := s.synced || s.gone, s.file
	l.mu.Unlock()
	if done {
		return nil
	}
	if err := file.Cut(int64(s.End())); err != nil {
		return err
	}
	l.noteSynced(s, wholeSegment)
	l.mu.Lock()
	defer l.mu.Unlock()
	s.synced = true
	return nil
}

// OnDurable registers f, to be called whenever a durable mark moved while
// somebody was waiting (see Await). The returned func takes it back.
func (l *Log) OnDurable(f func()) (forget func()) {
	l.notifyMu.Lock()
	defer l.notifyMu.Unlock()
	l.notify = append(l.notify, &f)
	return func() {
		l.notifyMu.Lock()
		defer l.notifyMu.Unlock()
		l.notify = slices.DeleteFunc(l.notify, func(p *func()) bool { return p == &f })
	}
}

// Await says that somebody waits for a durable mark; Arrived takes it back.
func (l *Log) Await() {
	l.waiters.Add(1)
	l.Press()
}

// Press sees that the durable mark will move, if that takes a sync.
func (l *Log) Press() {
	if l.opts.SyncEach {
		l.AskSync()
	}
}

// Arrived ends an Await.
func (l *Log) Arrived() { l.waiters.Add(-1) }

func (l *Log) wakeWaiters() {
	if l.waiters.Load() == 0 {
		return
	}
	l.notifyMu.Lock()
	defer l.notifyMu.Unlock()
	for _, f := range l.notify {
		(*f)()
	}
}
