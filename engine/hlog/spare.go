package hlog

import (
	"fmt"
	"time"
	"unsafe"
)

// prepareSpares keeps one segment ready, so that a head seldom waits for
// memory or a file. While there is none to be had, it tells those who ask why.
func (l *Log) prepareSpares() {
	for {
		s, err := l.makeSpare(l.opts.Room)
		if err != nil {
			if !l.tell(err) {
				return
			}
			continue
		}
		select {
		case l.spares <- s:
		case <-l.stop:
			l.discard(s)
			return
		}
	}
}

// tell offers the reason for having no spare, for a moment.
func (l *Log) tell(why error) bool {
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case l.spareErr <- why:
		case <-t.C:
			return true
		case <-l.stop:
			return false
		}
	}
}

// takeSpare gives the prepared segment, or waits until there is one or a
// reason against it.
func (l *Log) takeSpare() (*Segment, error) {
	if l.closing.Load() {
		return nil, ErrClosed
	}
	select {
	case s := <-l.spares:
		return s, nil
	case err := <-l.spareErr:
		return nil, err
	case <-l.stop:
		return nil, ErrClosed
	}
}

// makeSpare makes an empty segment with memory to append to, if there is room.
func (l *Log) makeSpare(room func() error) (*Segment, error) {
	if room != nil {
		if err := room(); err != nil {
			return nil, err
		}
	}
	s := l.newSegment()
	var err error
	if l.opts.Logged {
		err = l.mapFile(s)
	} else {
		err = l.takeFrame(s)
	}
	if err != nil {
		l.discard(s)
		return nil, err
	}
	return s, nil
}

// mapFile gives s a new file, mapped.
func (l *Log) mapFile(s *Segment) error {
	f, err := l.opts.Device.Create(s.ID, l.opts.SegmentBytes)
	if err != nil {
		return fmt.Errorf("open segment %d: %w", s.ID, err)
	}
	s.file = f
	if s.mapping, err = f.Map(); err != nil {
		return fmt.Errorf("map segment %d: %w", s.ID, err)
	}
	l.resident.Add(1)
	at := l.slots.at(s.Slot)
	at.setStable(0)
	at.setState(stateLogged)
	at.setBase(unsafe.Pointer(&s.mapping[0]))
	return nil
}

// takeFrame gives s plain memory.
func (l *Log) takeFrame(s *Segment) error {
	f, err := l.pool.get()
	if err != nil {
		return fmt.Errorf("memory for segment %d: %w", s.ID, err)
	}
	s.frame = f
	l.resident.Add(1)
	at := l.slots.at(s.Slot)
	at.setStable(wholeSegment)
	at.setState(stateMutable)
	at.setBase(f.base())
	return nil
}
