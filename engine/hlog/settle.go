package hlog

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"time"
	"unsafe"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// copyStep bounds what is copied without a chance for the scheduler: a large
// copy cannot be preempted and would hold up a collection of garbage.
const copyStep = 64 << 10

// closed hands a segment that its head has left to the background.
func (l *Log) closed(s *Segment) {
	l.mu.Lock()
	s.horizon = l.nextID
	l.mu.Unlock()
	inMemory := s.frame != nil // Segments of sides are.
	s.closed.Store(true)
	if !l.opts.Logged || inMemory {
		return
	}
	select {
	case l.settle <- s:
	default: // It stays on its mapping; nothing depends on settling.
	}
}

// settleLoop moves closed segments of a logged log from the mapping of their
// file, small pages in the page cache, to a frame on huge pages.
func (l *Log) settleLoop() {
	background.Quiet()
	for {
		select {
		case <-l.stop:
			return
		case s := <-l.settle:
			if !l.awaitCopied(s.batch, l.stop) || !l.awaitCalm(func() int { return len(l.settle) }, nil) {
				continue // It is copied from where it is.
			}
			if err := l.settleSegment(s); err != nil {
				l.opts.Logger.Error("a closed segment could not be settled", "segment", s.ID, "error", err)
			}
		}
	}
}

const (
	// settleLook is how often settling that waits looks whether it may go on.
	settleLook = 50 * time.Millisecond
	// settleBacklog is how many segments may wait for it: no haste lasts so long that
	// it would be for nothing.
	settleBacklog = 256
)

// awaitCalm waits while others need the cores for what somebody waits for, and the backlog is not too
// long; false if the log ends first. It looks at once when there is news.
func (l *Log) awaitCalm(backlog func() int, news <-chan struct{}) bool {
	tick := time.NewTicker(settleLook)
	defer tick.Stop()
	for l.opts.Busy != nil && l.opts.Busy() && backlog() < settleBacklog {
		select {
		case <-l.stop:
			return false
		case <-tick.C:
		case <-news:
		}
	}
	return true
}

func (l *Log) settleSegment(s *Segment) error {
	if err := l.fileSide(s); err != nil {
		return err
	}
	s.io.RLock() // The cleaner may be done with it already; its memory stays meanwhile.
	defer s.io.RUnlock()
	if err := l.flushFile(s); err != nil {
		return err
	}
	l.mu.Lock()
	mapping := s.mapping
	l.mu.Unlock()
	if mapping == nil {
		return nil
	}
	f, err := l.pool.get()
	if err != nil {
		return err
	}
	l.resident.Add(1)
	copyInSteps(f.bytes[:s.End()], mapping[:s.End()])
	return l.moveToFrame(s, f)
}

// moveToFrame makes the frame the segment's memory, and gives the mapping
// back once nobody reads through it any more.
func (l *Log) moveToFrame(s *Segment, f *frame) error {
	l.mu.Lock()
	if s.gone || s.mapping == nil || l.slots.at(s.Slot).loadBase() != unsafe.Pointer(&s.mapping[0]) {
		l.mu.Unlock()
		l.freeMemory(memory{frame: f})
		return nil
	}
	old := memory{file: s.file}
	s.frame, s.mapping = f, nil
	l.slots.at(s.Slot).setBase(f.base())
	l.mu.Unlock()
	l.afterGuards(func() {
		l.freeMemory(old)
		old.file.DropCache()
	})
	return nil
}

func copyInSteps(dst, src []byte) {
	for len(src) > 0 {
		n := copy(dst, src[:min(copyStep, len(src))])
		dst, src = dst[n:], src[n:]
		runtime.Gosched()
	}
}

// Freeze makes a closed segment of a volatile log read-only, in three steps
// with all guards passing in between: no more updates in place, no more version
// locks, no more changes at all. then runs after its records have their
// checksums and its seal stands. Several may freeze a segment at once.
func (l *Log) Freeze(s *Segment, then func()) {
	at := l.slots.at(s.Slot)
	l.mu.Lock()
	if l.opts.Logged || s.gone || at.loadState() == stateFrozen {
		l.mu.Unlock()
		then()
		return
	}
	s.onFrozen = append(s.onFrozen, then)
	first := l.announce(s)
	l.mu.Unlock()
	if first {
		l.still(s)
	}
}

// announce takes the first step of a freeze. It tells whether nobody has
// before; then the caller goes on with still. The caller holds l.mu.
func (l *Log) announce(s *Segment) bool {
	at := l.slots.at(s.Slot)
	if at.loadState() != stateMutable {
		return false
	}
	at.setState(stateFreezing)
	return true
}

// still takes the other steps, as guards pass.
func (l *Log) still(s *Segment) {
	l.afterGuards(func() {
		l.slots.at(s.Slot).setState(stateStill)
		l.afterGuards(func() { l.frozen(s) })
	})
}

// frozen ends a freeze. Nobody writes to the segment any more.
func (l *Log) frozen(s *Segment) {
	l.finishRecords(s)
	l.mu.Lock()
	l.slots.at(s.Slot).setState(stateFrozen)
	waiting := s.onFrozen
	s.onFrozen = nil
	l.mu.Unlock()
	for _, then := range waiting {
		then()
	}
}

// finishRecords gives the records of a volatile segment what a logged one has
// from the start: checksums and a closing seal.
func (l *Log) finishRecords(s *Segment) {
	base := l.slots.at(s.Slot).loadBase()
	chain := record.NewChain(s.ID)
	end := s.End()
	for off := uint32(0); off < end; {
		p := record.At(base, off)
		p.SetVersion(p.Version() &^ record.VersionLock)
		record.Finish(p)
		chain.Add(p)
		off += uint32(p.Length())
	}
	chain.PutSeal(unsafe.Slice((*byte)(unsafe.Add(base, end)), record.SealBytes), 0, true)
	l.survivor.dead.add(s.Slot, record.SealBytes)
	s.end.Store(end + record.SealBytes)
}

// Flush makes sure that a closed segment is whole in its file: it writes a
// frozen one of a volatile log, and syncs one of a logged log.
func (l *Log) Flush(s *Segment) error {
	l.mu.Lock()
	has, f, done := s.file != nil, s.frame, s.synced || s.gone
	l.mu.Unlock()
	if l.opts.Logged && !done {
		if s.aside.Load() {
			return l.SyncAll()
		}
		return l.syncHeads() // It counts only with all batches before its last.
	}
	if l.opts.Logged || has || f == nil {
		return nil
	}
	file, err := l.opts.Device.Create(s.ID, int(s.End()))
	if err != nil {
		return fmt.Errorf("flush segment %d: %w", s.ID, err)
	}
	if _, err = file.WriteAt(f.bytes[:s.End()], 0); err == nil {
		err = file.Sync()
	}
	if err != nil {
		file.Close()
		l.opts.Device.Remove(s.ID)
		return fmt.Errorf("flush segment %d: %w", s.ID, err)
	}
	file.DropCache()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.file, s.synced = file, true
	return nil
}

// Evict takes a segment that its file holds out of memory. The caller holds a
// guard.
func (l *Log) Evict(s *Segment) bool {
	if l.slots.at(s.Slot).loadState() == stateFrozen {
		l.noteTables(s)
	}
	l.mu.Lock()
	at := l.slots.at(s.Slot)
	if s.gone || s.pinned || s.file == nil || !s.synced || !l.Spillable(s) || at.loadState() != stateFrozen || at.loadBase() == nil {
		l.mu.Unlock()
		return false
	}
	at.setBase(nil)
	l.mu.Unlock()
	l.afterGuards(func() { l.free(s) })
	return true
}

// Vacate takes a frozen segment of a logged log out of memory, if it is there.
// Nothing in it is alive any more. It may be synced or not: its file stays until
// Remove.
func (l *Log) Vacate(s *Segment) {
	if !l.AtRest(s) {
		return // Somebody still copies from there: its memory goes with its file.
	}
	s.vacated.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.slots.at(s.Slot); !s.gone && at.loadBase() != nil {
		at.setBase(nil)
		l.afterGuards(func() { l.free(s) })
	}
}

// DropFile removes the local file of a segment that the blob tier holds.
func (l *Log) DropFile(s *Segment) error {
	s.io.Lock()
	defer s.io.Unlock()
	l.mu.Lock()
	file := s.file
	if s.gone || !s.remote.Load() || file == nil || s.mapping != nil {
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	if err := l.vouchFor(s); err != nil {
		return err
	}
	l.mu.Lock()
	s.file = nil
	l.mu.Unlock()
	file.Close()
	if err := l.opts.Device.Remove(s.ID); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // It was cleaned away at the same time.
}
