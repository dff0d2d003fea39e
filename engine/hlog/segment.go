package hlog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// Segment is a piece of the log. Its id is for ever; its slot, which addresses
// speak of, is used again after it is gone.
//
// The head appends to an open segment. Once closed, only the log's background
// work changes where its bytes are (frame, mapping, file), under l.mu.
type Segment struct {
	ID   record.SegmentID
	Slot uint32

	end     atomic.Uint32 // bytes in use, seals included
	closed  atomic.Bool
	batch   record.BatchID   // of its closing seal
	flushed bool             // its file is safe from power loss
	synced  bool             // and so are all batches up to its last; the file is cut to its end
	horizon record.SegmentID // all segments that were there when it closed have ids below

	file    device.File
	frame   *frame
	mapping []byte
	remote  atomic.Bool // the blob tier holds it
	held    atomic.Bool // copies elsewhere may count; see Drop
	aside   atomic.Bool // it is a side segment that is not adopted yet, or not synced
	vacated atomic.Bool // nothing in it is alive, and its memory is free
	pinned  bool        // somebody copies it from memory, without a guard
	gone    bool
	filing  sync.Mutex   // held by who gives a side segment its file
	io      sync.RWMutex // held shared while bytes are read without a guard, so that nothing is freed meanwhile

	syncedTo atomic.Uint32 // of a log with a replicator: up to where it is safe from loss of power
	copiedTo atomic.Uint32 // likewise: up to where it is copied, if both count

	onFrozen []func() // to run when the segment is frozen

	// Tombstones counts bytes of tombstones; they die as old segments go.
	Tombstones atomic.Int64
	created    int64
	table      record.TableID // of all its records, unless mixed; see noteTables
	mixed      bool
	tables     *TableSet // of its records; nil as long as nobody has looked
	expiry     int64     // when the last of its records expires; 0 if none does, or once that was noticed
	known      bool      // these four are
	doomed     atomic.Bool
	start      uint64 // its head's position at its first byte
	head       *Head
}

// End is how many bytes of the segment are in use.
func (s *Segment) End() uint32 { return s.end.Load() }

// Closed tells whether its head has left it.
func (s *Segment) Closed() bool { return s.closed.Load() }

// Horizon is an id that all segments open at the segment's time lie below.
func (s *Segment) Horizon() record.SegmentID { return s.horizon }

// Created is when the segment was opened, in Unix milliseconds.
func (s *Segment) Created() int64 { return s.created }

// Remote tells whether the blob tier holds the segment.
func (s *Segment) Remote() bool { return s.remote.Load() }

// SetRemote notes that the blob tier holds the segment.
func (s *Segment) SetRemote() { s.remote.Store(true) }

// newSegment gives a segment an id and a slot.
func (l *Log) newSegment() *Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &Segment{ID: l.nextID, created: l.opts.Now()}
	l.setNext(l.nextID + 1)
	l.enlist(s)
	return s
}

// enlist gives s a slot. The caller holds l.mu.
func (l *Log) enlist(s *Segment) {
	if n := len(l.freeSlot); n > 0 {
		s.Slot = l.freeSlot[n-1]
		l.freeSlot = l.freeSlot[:n-1]
	} else {
		s.Slot = l.nextSlot
		l.nextSlot++
	}
	l.segments[s.ID] = s
	l.bySlot[s.Slot] = s
}

// Segment finds a segment by the slot that addresses name.
func (l *Log) Segment(slot uint32) *Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bySlot[slot]
}

// ByID finds a segment by its id.
func (l *Log) ByID(id record.SegmentID) *Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments[id]
}

// Segments lists the log's segments by increasing id.
func (l *Log) Segments() []*Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*Segment, 0, len(l.segments))
	for _, s := range l.segments {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Segment) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Oldest is the lowest id among the segments, except for the one given. Spares
// do not count: what they will hold is newer than all there is.
func (l *Log) Oldest(except record.SegmentID) record.SegmentID {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.nextID
	for id, s := range l.segments {
		if id < oldest && id != except && s.End() > 0 {
			oldest = id
		}
	}
	return oldest
}

// OldestOpen is an id that all segments below it have: they are closed, so
// nothing will be written to them any more.
func (l *Log) OldestOpen() record.SegmentID {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.nextID
	for id, s := range l.segments {
		if !s.closed.Load() {
			oldest = min(oldest, id)
		}
	}
	return oldest
}

// Live is how many bytes of s are not known to be dead.
func (l *Log) Live(s *Segment) int64 {
	return int64(s.End()) - l.Dead(s)
}

// Dead adds up what all heads know to be dead in s.
func (l *Log) Dead(s *Segment) int64 {
	var dead int64
	for _, h := range l.heads {
		dead += int64(h.dead.get(s.Slot))
	}
	return dead + int64(l.survivor.dead.get(s.Slot))
}

// InMemory tells whether s can be read without I/O.
func (l *Log) InMemory(s *Segment) bool { return l.slots.at(s.Slot).loadBase() != nil }

// OnDisk tells whether the local disk holds the whole segment, for good.
func (l *Log) OnDisk(s *Segment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.file != nil && s.synced
}

// Bytes gives the used part of a segment that is in memory; nil if it is not.
// The caller holds a guard.
func (l *Log) Bytes(s *Segment) []byte {
	base := l.slots.at(s.Slot).loadBase()
	if base == nil {
		return nil
	}
	return unsafe.Slice((*byte)(base), s.End())
}

// Vacated tells whether the segment only waits for its Remove.
func (s *Segment) Vacated() bool { return s.vacated.Load() }

// Remove drops a segment in which nothing is live. Guards of now may still
// read it; its memory and slot are free for others once they have passed. Its
// file may be kept, for a checkpoint that still names it. Its copies elsewhere do
// not count any more: see Drop.
//
// The file goes first. While it is there the segment counts, or tombstones of
// records that it holds would be dropped, and a restart would bring those back.
func (l *Log) Remove(s *Segment, keepFile bool) error {
	if s.held.Load() {
		return fmt.Errorf("segment %d cannot be removed before its copies are dropped", s.ID)
	}
	if l.hasFile(s) && !keepFile {
		if err := l.vouchFor(s); err != nil {
			return err
		}
		if err := l.opts.Device.Remove(s.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.gone {
		return nil
	}
	s.gone = true
	delete(l.segments, s.ID)
	delete(l.bySlot, s.Slot)
	l.afterGuards(func() { l.recycle(s) })
	return nil
}

func (l *Log) hasFile(s *Segment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.file != nil
}

// discard removes a spare that was never opened.
func (l *Log) discard(s *Segment) error { return l.Remove(s, false) }

// recycle frees what a removed segment held. All guards of its time have passed.
func (l *Log) recycle(s *Segment) {
	l.slots.at(s.Slot).setBase(nil)
	l.free(s)
	l.closeFile(s)
	for _, h := range l.allHeads() {
		h.dead.reset(s.Slot)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.slots.at(s.Slot)
	at.setStable(0)
	at.setState(stateFree)
	l.freeSlot = append(l.freeSlot, s.Slot)
}

// free gives the segment's memory back, after reads under way.
func (l *Log) free(s *Segment) {
	s.io.Lock()
	defer s.io.Unlock()
	l.freeMemory(s.takeMemory(l))
}

// closeFile waits for reads under way.
func (l *Log) closeFile(s *Segment) {
	s.io.Lock()
	defer s.io.Unlock()
	l.mu.Lock()
	file := s.file
	s.file = nil
	l.mu.Unlock()
	if file != nil {
		file.Close()
	}
}

// memory is what a segment held and no longer does.
type memory struct {
	frame *frame
	file  device.File // to unmap
}

// takeMemory takes the segment's memory from it.
func (s *Segment) takeMemory(l *Log) memory {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := memory{frame: s.frame}
	if s.mapping != nil {
		m.file = s.file
	}
	s.frame, s.mapping = nil, nil
	return m
}

// freeMemory gives memory back that nobody can see any more.
func (l *Log) freeMemory(m memory) {
	if m.frame != nil {
		l.pool.put(m.frame)
		l.resident.Add(-1)
	}
	if m.file != nil {
		m.file.Unmap()
		l.resident.Add(-1)
	}
}
