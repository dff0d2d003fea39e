package device

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/direct"
)

// errClosed is what a closed file answers.
var errClosed = fmt.Errorf("file is closed: %w", os.ErrClosed)

// diskFile is an open segment of a Disk.
//
// Invariant: size only shrinks, by Cut; nobody reads a mapping past it, which
// would be a SIGBUS.
type diskFile struct {
	f    *os.File
	disk *Disk
	id   record.SegmentID
	path string
	size atomic.Int64

	mu       sync.Mutex // guards what follows
	mapping  []byte
	writable bool
	fresh    bool // it is as Create made it
	closed   bool
}

var (
	_ File   = (*diskFile)(nil)
	_ Filler = (*diskFile)(nil)
	_ Direct = (*diskFile)(nil)
)

func (d *Disk) file(f *os.File, id record.SegmentID, path string, size int64) *diskFile {
	df := &diskFile{f: f, disk: d, id: id, path: path}
	df.size.Store(size)
	return df
}

func (f *diskFile) Size() int64  { return f.size.Load() }
func (f *diskFile) Path() string { return f.path }

func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	return n, f.pass("read", err)
}

// WriteAt writes inside the segment; a segment never grows.
func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.change(off, len(p)); err != nil {
		return 0, err
	}
	n, err := f.f.WriteAt(p, off)
	return n, f.pass("write", err)
}

func (f *diskFile) WriteDirect(p []byte) (int, error) {
	if err := f.change(0, len(p)); err != nil {
		return 0, err
	}
	n, err := direct.Write(f.f, p, 0)
	return n, f.pass("write", err)
}

// change tells whether n bytes may be written at off, and that they will be.
func (f *diskFile) change(off int64, n int) error {
	if err := checkRange(f.path, off, n, f.Size()); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fresh = false
	return nil
}

// Fill writes the zeroes of a new segment to the page cache.
func (f *diskFile) Fill(between func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("fill %s: %w", f.path, errClosed)
	}
	if !f.fresh {
		return nil
	}
	f.fresh = false
	return f.pass("fill", writeZeros(f.f, f.Size(), between))
}

func (f *diskFile) Map() ([]byte, error) { return f.mapAs(true) }

func (f *diskFile) MapRead() ([]byte, error) { return f.mapAs(false) }

// mapAs maps and fills the page table. File mappings have no huge pages: 8 MiB
// are 2,048 faults, which is why they are taken here.
func (f *diskFile) mapAs(writable bool) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, fmt.Errorf("map %s: %w", f.path, errClosed)
	case f.mapping != nil && f.writable == writable:
		return f.mapping, nil
	case f.mapping != nil:
		return nil, fmt.Errorf("map %s: it is already mapped in another way; unmap it first", f.path)
	}
	m, err := mapFile(f.f, f.Size(), writable)
	if err != nil {
		return nil, f.disk.explain("map", f.path, err)
	}
	f.mapping, f.writable, f.fresh = m, writable, false
	return m, nil
}

func (f *diskFile) Unmap() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unmapLocked()
}

func (f *diskFile) unmapLocked() error {
	if f.mapping == nil {
		return nil
	}
	m := f.mapping
	f.mapping = nil
	if err := unix.Munmap(m); err != nil {
		return f.disk.explain("unmap", f.path, err)
	}
	return nil
}

// Sync is fdatasync: stores through a shared mapping are dirty pages of the file
// like any others. The kernel reports a failed write-back once and then takes the
// pages for clean; hence the failure is kept, also for those who open the segment
// again.
func (f *diskFile) Sync() error {
	err := f.disk.failures.of(f.id)
	if err == nil {
		err = onFd(f.f, f.disk.datasync)
	}
	switch {
	case err == nil:
		return f.disk.failures.of(f.id) // A concurrent Sync may have been told what befell our pages.
	case errors.Is(err, os.ErrClosed):
		return fmt.Errorf("sync %s: %w", f.path, err)
	default:
		return f.disk.failures.keep(f.id, f.disk.explain("sync", f.path, err))
	}
}

func (f *diskFile) Cut(bytes int64) error {
	if err := checkRange(f.path, 0, int(bytes), f.Size()); err != nil {
		return err
	}
	if err := f.f.Truncate(bytes); err != nil {
		return f.disk.explain("cut", f.path, err)
	}
	f.size.Store(bytes)
	return nil
}

func (f *diskFile) DropCache() error {
	return f.pass("drop the cache of", onFd(f.f, func(fd int) error {
		return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	}))
}

func (f *diskFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	return errors.Join(f.unmapLocked(), f.pass("close", f.f.Close()))
}

// pass explains err, but leaves io.EOF as readers expect it.
func (f *diskFile) pass(act string, err error) error {
	if err == nil || isEOF(err) {
		return err
	}
	return f.disk.explain(act, f.path, err)
}
