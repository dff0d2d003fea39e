package hlog

import (
	"errors"
	"slices"
	"time"
)

// syncLoop makes sealed batches safe from loss of power: every second, or as
// soon as somebody waits for it. One sync serves all that was sealed before it.
func (l *Log) syncLoop() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.syncAsk:
		case <-tick.C:
		}
		_ = l.syncHeads() // SyncError tells all who ask.
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

// SyncError is the failure that ended all durability, if there was one: after
// a failed sync nobody knows what is on the disk.
func (l *Log) SyncError() error {
	if e := l.syncErr.Load(); e != nil {
		return *e
	}
	return nil
}

// NextSync is the number of a sync that covers all that is sealed by now.
func (l *Log) NextSync() int64 { return l.syncsBegun.Load() + 1 }

// HasSynced tells whether the sync of that number, or a later one, has
// succeeded.
func (l *Log) HasSynced(n int64) bool { return l.syncedBegun.Load() >= n }

// Sync makes all that is sealed durable, and returns when it is.
func (l *Log) Sync() error {
	if !l.opts.Logged {
		return nil
	}
	return l.syncHeads()
}

func (l *Log) syncHeads() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	begun := l.syncsBegun.Add(1)
	var errs []error
	for _, h := range l.allHeads() {
		errs = append(errs, h.sync())
	}
	l.syncs.Add(1)
	err := errors.Join(errs...)
	if err == nil {
		l.syncedBegun.Store(begun)
	}
	if err != nil && l.syncErr.CompareAndSwap(nil, &err) {
		l.opts.Logger.Error("sync failed: writes are refused until restart", "error", err)
	}
	return err
}

// sync makes all batches that are sealed by now durable. The caller holds syncMu.
func (h *Head) sync() error {
	h.mu.Lock()
	pos, open, off := h.sealed.Load(), h.seg, h.from
	closed := h.unsynced
	h.unsynced = nil
	h.mu.Unlock()

	for i, s := range closed {
		if err := h.log.syncClosed(s); err != nil {
			h.mu.Lock()
			h.unsynced = append(closed[i:], h.unsynced...)
			h.mu.Unlock()
			return err
		}
	}
	if open != nil && h.syncedTo < pos {
		if err := open.file.Sync(); err != nil {
			return err
		}
		h.log.slots.at(open.Slot).raiseStable(off)
	}
	if h.log.opts.SyncEach {
		h.durable.Store(pos)
	}
	h.syncedTo = pos
	return nil
}

// syncClosed makes a closed segment durable and cuts its file to its end,
// which marks it as closed for recovery.
func (l *Log) syncClosed(s *Segment) error {
	l.mu.Lock()
	done, file := s.synced || s.gone, s.file
	l.mu.Unlock()
	if done {
		return nil
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Cut(int64(s.End())); err != nil {
		return err
	}
	l.slots.at(s.Slot).raiseStable(wholeSegment)
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
