package hlog

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/internal/background"
)

// prepareSpares keeps segments ready, so that a head seldom waits for memory or
// a file.
func (l *Log) prepareSpares() {
	for {
		s, err := l.makeSpare(true)
		l.attempted(err)
		if err != nil {
			if !l.pause(20 * time.Millisecond) {
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

// takeSpare gives a prepared segment, or makes one if there is room for it now.
func (l *Log) takeSpare() (*Segment, error) {
	if l.closing.Load() {
		return nil, ErrClosed
	}
	select {
	case s := <-l.spares:
		return s, nil
	default:
	}
	if l.opts.Replicator == nil {
		return l.makeSpare(false)
	}
	if l.opts.Room != nil {
		if err := l.opts.Room(false); err != nil {
			return nil, err
		}
	}
	return nil, l.notReady()
}

// Spares tells how many segments are ready.
func (l *Log) Spares() int { return len(l.spares) }

// MostSpares tells how many are ready at the most.
func (l *Log) MostSpares() int { return cap(l.spares) }

// makeSpare makes an empty segment with memory to append to, if there is room.
func (l *Log) makeSpare(wait bool) (*Segment, error) {
	if l.opts.Room != nil {
		if err := l.opts.Room(wait); err != nil {
			return nil, err
		}
	}
	return l.makeSegment()
}

// makeSegment makes an empty segment, room or not. Its errors are ErrNoSegment.
func (l *Log) makeSegment() (*Segment, error) {
	s, err := l.makeEmpty()
	if err != nil {
		return nil, noSegment{err}
	}
	return s, nil
}

// noSegment is an ErrNoSegment in the words of what is missing.
type noSegment struct{ error }

func (n noSegment) Is(target error) bool { return target == ErrNoSegment }
func (n noSegment) Unwrap() error        { return n.error }

func (l *Log) makeEmpty() (*Segment, error) {
	s, err := l.drawSegment()
	if err != nil {
		return nil, err
	}
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

// mapFile gives s a new file, mapped. Its zeroes are ten milliseconds of a core and more; while there is time, whoever
// serves goes first.
func (l *Log) mapFile(s *Segment) error {
	var f device.File
	var mapping []byte
	var err error
	create := func() { f, mapping, err = l.newFile(s) }
	if l.unhurried() {
		background.Modestly(create)
	} else {
		create()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.file, s.mapping = f, mapping
	if err != nil {
		return err
	}
	l.resident.Add(1)
	at := l.slots.at(s.Slot)
	at.setStable(0)
	at.setState(stateLogged)
	at.setBase(unsafe.Pointer(&mapping[0]))
	return nil
}

// newFile makes the file of a segment and maps it. After an error the file, if there is one, is the caller's.
func (l *Log) newFile(s *Segment) (device.File, []byte, error) {
	f, err := l.opts.Device.Create(s.ID, l.opts.SegmentBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("open segment %d: %w", s.ID, err)
	}
	mapping, err := l.mapNew(f)
	if err != nil {
		return f, nil, fmt.Errorf("map segment %d: %w", s.ID, err)
	}
	if l.opts.SyncEach { // Or the first batch would wait for the whole file.
		if err := f.Sync(); err != nil {
			return f, mapping, fmt.Errorf("sync segment %d: %w", s.ID, err)
		}
	}
	return f, mapping, nil
}

// mapNew maps a new file. If few syncs will follow it gets larger pages.
func (l *Log) mapNew(f device.File) ([]byte, error) {
	if z, can := f.(device.Filler); can && !l.opts.SyncEach {
		if err := z.Fill(l.breathe); err != nil {
			return nil, err
		}
	}
	return f.Map()
}

// unhurried tells whether so many segments are ready that nobody will wait for the next one.
func (l *Log) unhurried() bool { return 2*len(l.spares) > cap(l.spares) }

// breathe leaves core and disk to others for a moment, if there is time.
func (l *Log) breathe() {
	if l.unhurried() {
		background.Breathe()
	}
}

// takeFrame gives s plain memory.
func (l *Log) takeFrame(s *Segment) error {
	f, err := l.pool.get()
	if err != nil {
		return fmt.Errorf("memory for segment %d: %w", s.ID, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.frame = f
	l.resident.Add(1)
	at := l.slots.at(s.Slot)
	at.setStable(wholeSegment)
	at.setState(stateMutable)
	at.setBase(f.base())
	return nil
}
