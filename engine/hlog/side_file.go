package hlog

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/internal/background"
)

// fileSide gives a closed side segment its file, and returns when that is safe from loss of
// power. Others have one. The caller does not hold the segment's io.
func (l *Log) fileSide(s *Segment) error {
	if !s.aside.Load() {
		return nil
	}
	s.filing.Lock()
	defer s.filing.Unlock()
	s.io.RLock() // Its memory stays meanwhile.
	defer s.io.RUnlock()
	l.mu.Lock()
	f, has := s.frame, s.file != nil || s.gone
	l.mu.Unlock()
	if has || f == nil || !s.aside.Load() {
		return nil
	}
	file, err := l.opts.Device.Create(s.ID, l.opts.SegmentBytes)
	if err != nil {
		return fmt.Errorf("write side segment %d: %w", s.ID, err)
	}
	if err := writeWhole(file, f.bytes[:s.End()]); err != nil {
		return fmt.Errorf("write side segment %d: %w", s.ID, errors.Join(err, file.Close(), l.opts.Device.Remove(s.ID)))
	}
	file.DropCache()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.file, s.flushed = file, true
	return nil
}

// writeWhole writes a segment's bytes to its file, past the cache if that can be, and syncs it.
func writeWhole(file device.File, b []byte) (err error) {
	done := 0
	if d, ok := file.(device.Direct); ok {
		background.Waiting(func() { done, err = d.WriteDirect(b) })
	}
	if err == nil && len(b)-done > background.Piece {
		background.InTurnHumbly(func(rest func()) { err = writeInSteps(file, b, done, rest) })
		done = len(b)
	}
	background.Waiting(func() {
		if err == nil {
			err = writeInSteps(file, b, done, func() {})
		}
		if err == nil {
			err = file.Sync()
		}
	})
	return err
}

// writeInSteps writes b to its file, from some byte on.
func writeInSteps(file device.File, b []byte, at int, rest func()) error {
	for ; at < len(b); at += background.Piece {
		if _, err := file.WriteAt(b[at:min(at+background.Piece, len(b))], int64(at)); err != nil {
			return err
		}
		rest()
	}
	return nil
}

// fileSides gives closed side segments their files, whole and cut to their ends. No batch
// depends on them, so no other file need be synced before.
func (l *Log) fileSides(some []*Segment) error {
	errs := make([]error, len(some))
	var all sync.WaitGroup
	for i, s := range some {
		all.Go(func() { errs[i] = l.fileSide(s) })
	}
	all.Wait()
	err := errors.Join(errs...)
	if err == nil {
		err = each(some, l.cutClosed)
	}
	return err
}

// pin keeps a segment that is in memory there, so that it can be copied without a guard, and gives its bytes; nil if it
// is not. It is for side segments, which nobody removes before they are adopted.
func (l *Log) pin(s *Segment) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.pinned = s.frame != nil && l.slots.at(s.Slot).loadBase() == s.frame.base()
	if !s.pinned {
		return nil
	}
	return s.frame.bytes[:s.End()]
}

func (l *Log) unpin(s *Segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.pinned = false
}

// pinnedBytes gives a copy of a segment that is pinned; nil if it is not.
func (l *Log) pinnedBytes(s *Segment) []byte {
	s.io.RLock() // Its memory stays meanwhile, though its pin may not.
	defer s.io.RUnlock()
	l.mu.Lock()
	f, pinned := s.frame, s.pinned
	l.mu.Unlock()
	if !pinned || f == nil {
		return nil
	}
	b := l.loads.get(l.opts.SegmentBytes)[:s.End()]
	copyInSteps(b, f.bytes[:s.End()])
	return b
}

// loads is memory for copies of segments that are on their way to others.
type loads struct{ sync.Pool }

func (p *loads) get(n int) []byte {
	if b, _ := p.Pool.Get().(*[]byte); b != nil && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n)
}

func (p *loads) put(b []byte) { p.Pool.Put(&b) }
