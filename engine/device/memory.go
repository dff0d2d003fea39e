package device

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/engine/record"
)

// Memory is a Device for tests that can be cloned as a crash would leave it, and
// told to fail. Its segments are memfds, so a mapping behaves as one of a disk
// file: it lies outside the Go heap, and use after Unmap faults.
//
//	Crash      every process dies: what was stored is there, synced or not
//	PowerLoss  what was synced is there, and of the rest whatever pages chance kept
//
// Metadata, creation and removal are durable when the call returns, as on Disk;
// a stream that was not committed leaves nothing.
type Memory struct {
	faults   faults
	failures failures

	mu       sync.Mutex // guards what follows
	segments map[record.SegmentID]*memorySegment
	meta     map[string][]byte // values are never changed, only replaced
	used     int64
	capacity int64 // 0: no limit
	locked   bool
}

var _ Device = (*Memory)(nil)

// plenty is the free space of a Memory without a limit.
const plenty = 1 << 50

// NewMemory makes an empty device without limits or faults.
func NewMemory() *Memory {
	return &Memory{segments: make(map[record.SegmentID]*memorySegment), meta: make(map[string][]byte)}
}

// Crash clones the device as the death of its process leaves it: unlocked,
// without faults, with everything that was stored. Stop the writers first, or
// accept that segments are caught one after another.
func (m *Memory) Crash() *Memory {
	return m.clone(func(s *memorySegment) *memorySegment { return s.crash() })
}

// PowerLoss clones the device as a power cut leaves it. Which unsynced pages
// arrived, from none to all, is rng's choice alone: the same seed gives the same
// clone.
func (m *Memory) PowerLoss(rng *rand.Rand) *Memory {
	keep := rng.Float64()*1.5 - 0.25 // a sixth of all clones lose every page, a sixth none
	return m.clone(func(s *memorySegment) *memorySegment {
		return s.powerLoss(func() bool { return rng.Float64() < keep })
	})
}

func (m *Memory) clone(each func(*memorySegment) *memorySegment) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMemory()
	c.meta, c.used, c.capacity = maps.Clone(m.meta), m.used, m.capacity
	for _, id := range slices.Sorted(maps.Keys(m.segments)) {
		c.segments[id] = each(m.segments[id])
	}
	return c
}

// Fail makes the nth call of op from now on fail with err; 1 is the next one. A
// failed Sync holds for good, a failed write leaves a part of itself.
func (m *Memory) Fail(op Op, nth int, err error) { m.faults.plan(op, nth, err) }

// Calls tells how often op was called so far, failed calls included, so that a
// test can fail each of them in turn.
func (m *Memory) Calls(op Op) int { return m.faults.calls(op) }

// SetCapacity limits what segments and metadata may take; 0 lifts the limit.
func (m *Memory) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

// OpenFiles tells how many Files of segments that were not removed are open.
func (m *Memory) OpenFiles() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.segments {
		n += s.openFiles()
	}
	return n
}

// Close frees the segments. Open Files stay usable until they are closed.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.segments {
		s.release()
	}
	clear(m.segments)
	clear(m.meta)
	m.used = 0
}

// Create makes a segment of zeros.
func (m *Memory) Create(id record.SegmentID, bytes int) (File, error) {
	path := memoryPath(segmentName(id))
	if bytes <= 0 {
		return nil, fmt.Errorf("create segment %s: %d bytes is no size for a segment", path, bytes)
	}
	if err := m.faults.hit(OpCreate); err != nil {
		return nil, fmt.Errorf("create segment %s: %w", path, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.segments[id]; ok {
		return nil, fmt.Errorf("create segment %s: %w", path, fs.ErrExist)
	}
	if err := m.takeLocked("create segment "+path, int64(bytes)); err != nil {
		return nil, err
	}
	s := newMemorySegment(int64(bytes))
	m.segments[id] = s
	return &memoryFile{memory: m, id: id, path: path, segment: s.hold()}, nil
}

// Open opens an existing segment.
func (m *Memory) Open(id record.SegmentID) (File, error) {
	path := memoryPath(segmentName(id))
	if err := m.faults.hit(OpOpen); err != nil {
		return nil, fmt.Errorf("open segment %s: %w", path, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.segments[id]
	if !ok {
		return nil, fmt.Errorf("open segment %s: %w", path, fs.ErrNotExist)
	}
	return &memoryFile{memory: m, id: id, path: path, segment: s.hold()}, nil
}

// List names the segments.
func (m *Memory) List() ([]record.SegmentID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.segments)), nil
}

// Remove deletes a segment.
func (m *Memory) Remove(id record.SegmentID) error {
	path := memoryPath(segmentName(id))
	if err := m.faults.hit(OpRemove); err != nil {
		return fmt.Errorf("remove segment %s: %w", path, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.segments[id]
	if !ok {
		return fmt.Errorf("remove segment %s: %w", path, fs.ErrNotExist)
	}
	delete(m.segments, id)
	m.used -= s.size.Load()
	m.failures.forget(id)
	s.release()
	return nil
}

// WriteMeta replaces metadata.
func (m *Memory) WriteMeta(name string, data []byte) error {
	return writeMeta(m, name, data)
}

// ReadMeta gives a copy of the named metadata.
func (m *Memory) ReadMeta(name string) ([]byte, error) {
	data, err := m.metadata(name)
	return bytes.Clone(data), err
}

// OpenStream reads the metadata as it is now.
func (m *Memory) OpenStream(name string) (io.ReadCloser, error) {
	data, err := m.metadata(name)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (m *Memory) metadata(name string) ([]byte, error) {
	if err := errors.Join(checkMetaName(name), m.faults.hit(OpRead)); err != nil {
		return nil, fmt.Errorf("read %s: %w", memoryPath(name), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.meta[name]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", memoryPath(name), fs.ErrNotExist)
	}
	return data, nil
}

// RemoveMeta deletes the named metadata.
func (m *Memory) RemoveMeta(name string) error {
	if err := errors.Join(checkMetaName(name), m.faults.hit(OpRemove)); err != nil {
		return fmt.Errorf("remove %s: %w", memoryPath(name), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.meta[name]
	if !ok {
		return fmt.Errorf("remove %s: %w", memoryPath(name), fs.ErrNotExist)
	}
	m.used -= int64(len(data))
	delete(m.meta, name)
	return nil
}

// CreateStream starts a replacement of the named metadata.
func (m *Memory) CreateStream(name string) (Stream, error) {
	if err := errors.Join(checkMetaName(name), m.faults.hit(OpCreate)); err != nil {
		return nil, fmt.Errorf("create %s: %w", memoryPath(name), err)
	}
	return &memoryStream{memory: m, name: name}, nil
}

// Lock takes the device; a clone is free again.
func (m *Memory) Lock() (release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return nil, fmt.Errorf("memory device is %w: close its other user first", ErrLocked)
	}
	m.locked = true
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.locked = false
	}), nil
}

// Usage counts segments and metadata; unfinished streams count, too.
func (m *Memory) Usage() (bytes, free int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.capacity == 0 {
		return m.used, plenty, nil
	}
	return m.used, max(0, m.capacity-m.used), nil
}

// takeLocked accounts for bytes, if there is room.
func (m *Memory) takeLocked(act string, bytes int64) error {
	if m.capacity != 0 && m.used+bytes > m.capacity {
		return fmt.Errorf("%s: %w on memory device of %d bytes", act, ErrFull, m.capacity)
	}
	m.used += bytes
	return nil
}

func memoryPath(name string) string { return "memory:" + name }

// free gives bytes back that a segment was cut by.
func (m *Memory) free(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= bytes
}
