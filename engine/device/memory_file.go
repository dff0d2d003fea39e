package device

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/record"
)

// memoryFile is an open segment of a Memory.
type memoryFile struct {
	memory  *Memory
	id      record.SegmentID
	path    string
	segment *memorySegment

	mu       sync.Mutex // guards what follows
	mapping  []byte
	writable bool
	closed   bool
}

var _ File = (*memoryFile)(nil)

func (f *memoryFile) Size() int64  { return f.segment.size.Load() }
func (f *memoryFile) Path() string { return f.path }

func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.begin("read", OpRead); err != nil {
		return 0, err
	}
	return f.segment.file.ReadAt(p, off)
}

// WriteAt leaves half of p behind when it is made to fail.
func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	if err := checkRange(f.path, off, len(p), f.segment.size.Load()); err != nil {
		return 0, err
	}
	if err := f.usable("write"); err != nil {
		return 0, err
	}
	if fault := f.memory.faults.hit(OpWrite); fault != nil {
		n, _ := f.segment.file.WriteAt(p[:len(p)/2], off)
		return n, fmt.Errorf("write %s: %w", f.path, fault)
	}
	return f.segment.file.WriteAt(p, off)
}

func (f *memoryFile) Map() ([]byte, error) { return f.mapAs(true) }

func (f *memoryFile) MapRead() ([]byte, error) { return f.mapAs(false) }

// mapAs does not populate: untouched pages stay holes, and clones stay cheap.
func (f *memoryFile) mapAs(writable bool) ([]byte, error) {
	if err := f.begin("map", OpMap); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.mapping != nil && f.writable == writable:
		return f.mapping, nil
	case f.mapping != nil:
		return nil, fmt.Errorf("map %s: it is already mapped in another way; unmap it first", f.path)
	}
	m, err := mapOnly(f.segment.file, f.segment.size.Load(), writable)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.path, err)
	}
	f.mapping, f.writable = m, writable
	return m, nil
}

func (f *memoryFile) Unmap() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unmapLocked()
}

func (f *memoryFile) unmapLocked() error {
	if f.mapping == nil {
		return nil
	}
	m := f.mapping
	f.mapping = nil
	return unix.Munmap(m)
}

func (f *memoryFile) Sync() error {
	if err := f.memory.failures.of(f.id); err != nil {
		return err
	}
	if err := f.usable("sync"); err != nil {
		return err
	}
	if err := f.memory.faults.hit(OpSync); err != nil {
		return f.memory.failures.keep(f.id, fmt.Errorf("sync %s: %w", f.path, err))
	}
	f.segment.sync()
	return f.memory.failures.of(f.id)
}

func (f *memoryFile) Cut(bytes int64) error {
	if err := f.usable("cut"); err != nil {
		return err
	}
	if err := checkRange(f.path, 0, int(bytes), f.Size()); err != nil {
		return err
	}
	f.memory.free(f.Size() - bytes)
	return f.segment.cut(bytes)
}

func (f *memoryFile) DropCache() error { return f.usable("drop the cache of") }

func (f *memoryFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	f.segment.release()
	return f.unmapLocked()
}

// begin tells whether an act may go on.
func (f *memoryFile) begin(act string, op Op) error {
	if err := f.usable(act); err != nil {
		return err
	}
	if err := f.memory.faults.hit(op); err != nil {
		return fmt.Errorf("%s %s: %w", act, f.path, err)
	}
	return nil
}

func (f *memoryFile) usable(act string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("%s %s: %w", act, f.path, errClosed)
	}
	return nil
}
