package hlog

import (
	"fmt"
	"unsafe"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// Found is a segment that a former life of the log left on the device.
type Found struct {
	ID     record.SegmentID
	Closed bool // it was closed and synced: any damage is corruption
	file   device.File
	// horizon is above all ids that were found: which segments were open at
	// the segment's time is not known any more.
	horizon record.SegmentID
}

// Close forgets a found segment.
func (f Found) Close() error { return f.file.Close() }

// Bytes is the size of the segment's file.
func (f Found) Bytes() int64 { return f.file.Size() }

// End cuts the file of a segment that is known to have been closed and synced
// at end: a loss of power may have undone the cut.
func (f *Found) End(end uint32) error {
	if f.Closed {
		return nil
	}
	f.Closed = true
	return f.file.Cut(int64(end))
}

// Find lists what the device holds, oldest first.
func Find(d device.Device, segmentBytes int) ([]Found, error) {
	ids, err := d.List()
	if err != nil {
		return nil, err
	}
	found := make([]Found, 0, len(ids))
	for _, id := range ids {
		f, err := d.Open(id)
		if err == nil && f.Size() > int64(segmentBytes) {
			f.Close()
			err = fmt.Errorf("it has %d bytes, more than a segment of now: set the segment size to what it was", f.Size())
		}
		if err != nil {
			CloseAll(found)
			return nil, fmt.Errorf("open segment %d: %w", id, err)
		}
		// A file is cut to its end, which is never its last byte, when its segment
		// was closed and synced.
		found = append(found, Found{ID: id, Closed: f.Size() < int64(segmentBytes), file: f, horizon: ids[len(ids)-1] + 1})
	}
	return found, nil
}

// CloseAll forgets found segments.
func CloseAll(found []Found) {
	for _, f := range found {
		f.Close()
	}
}

// Adopt takes a found segment into the log, its bytes in memory: in a frame of
// its own, or through a mapping that Evict will give back. Adopted segments
// are frozen. One that was not closed has been ended by Resume.
func (l *Log) Adopt(f Found, inFrame bool) (*Segment, error) {
	s := &Segment{ID: f.ID, file: f.file, created: l.opts.Now()}
	s.closed.Store(true)
	if err := l.readIn(s, inFrame); err != nil {
		return nil, err
	}
	ext, err := record.ScanWith(l.window(s), f.ID, record.ScanOptions{Closed: f.Closed})
	if err != nil {
		l.freeMemory(memory{frame: s.frame, file: mappedFile(s)})
		return nil, err
	}
	s.end.Store(uint32(ext.End))
	s.batch = ext.Batch
	l.mu.Lock()
	l.enlist(s)
	l.setNext(max(l.nextID, s.ID+1))
	s.horizon = f.horizon
	at := l.slots.at(s.Slot)
	at.setStable(wholeSegment)
	at.setState(stateFrozen)
	at.setBase(unsafe.Pointer(&l.window(s)[0]))
	l.mu.Unlock()
	if f.Closed {
		s.synced = true
		return s, nil
	}
	return s, l.cutClosed(s)
}

// AdoptKnown takes a closed segment into the log that a snapshot describes. It
// is read, and scanned for damage, only if it is to be in memory; the others'
// records are checked one by one when they are fetched.
func (l *Log) AdoptKnown(f Found, inMemory bool, sum Summary) (*Segment, error) {
	s := &Segment{ID: f.ID, file: f.file, batch: sum.Batch, created: sum.Created, horizon: sum.Horizon, table: sum.Table, mixed: sum.Mixed, tables: sum.tables(), expiry: sum.Expiry, known: true, synced: true}
	s.closed.Store(true)
	s.end.Store(uint32(f.file.Size()))
	s.Tombstones.Store(sum.Tombstones)
	if inMemory {
		if err := l.readIn(s, true); err != nil {
			return nil, err
		}
		if _, err := record.ScanWith(l.window(s), f.ID, record.ScanOptions{Closed: true}); err != nil {
			l.freeMemory(memory{frame: s.frame})
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enlist(s)
	l.setNext(max(l.nextID, s.ID+1))
	at := l.slots.at(s.Slot)
	at.setStable(wholeSegment)
	at.setState(stateFrozen)
	if inMemory {
		at.setBase(s.frame.base())
	}
	l.survivor.dead.add(s.Slot, int32(sum.Dead))
	return s, nil
}

func mappedFile(s *Segment) device.File {
	if s.mapping == nil {
		return nil
	}
	return s.file
}

// readIn brings the bytes of the segment's file into memory.
func (l *Log) readIn(s *Segment, inFrame bool) (err error) {
	if !inFrame {
		if s.mapping, err = s.file.MapRead(); err == nil {
			l.resident.Add(1)
		}
		return err
	}
	if s.frame, err = l.pool.get(); err != nil {
		return err
	}
	l.resident.Add(1)
	size := min(s.file.Size(), int64(len(s.frame.bytes)))
	for off := int64(0); off < size; off += copyStep {
		p := s.frame.bytes[off:min(off+copyStep, size)]
		if n, err := s.file.ReadAt(p, off); n < len(p) {
			l.freeMemory(memory{frame: s.frame})
			return fmt.Errorf("read %s: %w", s.file.Path(), err)
		}
	}
	return nil
}

// window is the whole of what readIn brought.
func (l *Log) window(s *Segment) []byte {
	if s.frame != nil {
		return s.frame.bytes[:min(s.file.Size(), int64(len(s.frame.bytes)))]
	}
	return s.mapping
}
