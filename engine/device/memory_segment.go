package device

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// pageBytes is what a disk writes at once: after a loss of power a page is the old
// one or the new one.
const pageBytes = 4096

// memoryPages are the pages of a segment by number; absent ones are zero. A page is
// never changed, only replaced, so that clones may share it.
type memoryPages map[int64]*[pageBytes]byte

// memorySegment is the content of a segment, whoever has it open. The memfd is
// what the page cache would be, synced is the medium.
type memorySegment struct {
	file *os.File
	size atomic.Int64

	mu     sync.Mutex // guards what follows
	synced memoryPages
	users  int // the device and its open Files; the last one closes the memfd
}

// newMemorySegment panics where the system gives no memory: there is no test then.
func newMemorySegment(size int64) *memorySegment {
	fd, err := unix.MemfdCreate("ostro-segment", unix.MFD_CLOEXEC)
	if err != nil {
		panic(fmt.Sprintf("device: no memfd for a segment in memory: %v", err))
	}
	f := os.NewFile(uintptr(fd), "ostro-segment")
	if err := f.Truncate(size); err != nil {
		panic(fmt.Sprintf("device: no memory for a segment of %d bytes: %v", size, err))
	}
	s := &memorySegment{file: f, synced: memoryPages{}, users: 1}
	s.size.Store(size)
	return s
}

func (s *memorySegment) hold() *memorySegment {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	return s
}

func (s *memorySegment) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		_ = s.file.Close()
	}
}

func (s *memorySegment) openFiles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users - 1
}

// sync moves the pages that differ to the medium.
func (s *memorySegment) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eachUnsynced(func(n int64, page *[pageBytes]byte) {
		fresh := *page
		s.synced[n] = &fresh
	})
}

// cut shortens cache and medium.
func (s *memorySegment) cut(bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size.Store(bytes)
	for n, page := range s.synced {
		switch left := bytes - n*pageBytes; {
		case left <= 0:
			delete(s.synced, n)
		case left < pageBytes:
			short := *page
			clear(short[left:])
			s.synced[n] = &short
		}
	}
	return s.file.Truncate(bytes)
}

// crash clones the cache and the medium behind it.
func (s *memorySegment) crash() *memorySegment {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newMemorySegment(s.size.Load())
	c.synced = maps.Clone(s.synced)
	s.eachPage(func(n int64, page *[pageBytes]byte) { c.put(n, page) })
	return c
}

// powerLoss clones the medium, and those pages of the cache that arrived says.
func (s *memorySegment) powerLoss(arrived func() bool) *memorySegment {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newMemorySegment(s.size.Load())
	c.synced = maps.Clone(s.synced)
	s.eachUnsynced(func(n int64, page *[pageBytes]byte) {
		if arrived() {
			fresh := *page
			c.synced[n] = &fresh
		}
	})
	for n, page := range c.synced {
		c.put(n, page)
	}
	return c
}

// put writes a page into the memfd; the last one may be short.
func (s *memorySegment) put(n int64, page *[pageBytes]byte) {
	off := n * pageBytes
	if _, err := s.file.WriteAt(page[:min(pageBytes, s.size.Load()-off)], off); err != nil {
		panic(fmt.Sprintf("device: clone a segment in memory: %v", err))
	}
}

// eachUnsynced visits the pages that differ from the medium, in order.
func (s *memorySegment) eachUnsynced(visit func(n int64, page *[pageBytes]byte)) {
	s.eachPage(func(n int64, page *[pageBytes]byte) {
		old, ok := s.synced[n]
		if ok && *old != *page || !ok && *page != [pageBytes]byte{} {
			visit(n, page)
		}
	})
}

// eachPage visits the pages that were ever stored to, in order; the rest are
// holes of the memfd.
func (s *memorySegment) eachPage(visit func(n int64, page *[pageBytes]byte)) {
	var page [pageBytes]byte
	for off := s.nextData(0); off < s.size.Load(); off = s.nextData(off + pageBytes) {
		n, err := s.file.ReadAt(page[:], off)
		if err != nil && !errors.Is(err, io.EOF) {
			panic(fmt.Sprintf("device: read a segment in memory: %v", err))
		}
		clear(page[n:])
		visit(off/pageBytes, &page)
	}
}

// nextData finds the first page at or behind off that is no hole.
func (s *memorySegment) nextData(off int64) int64 {
	if off >= s.size.Load() {
		return s.size.Load()
	}
	at := s.size.Load()
	err := onFd(s.file, func(fd int) (err error) {
		at, err = unix.Seek(fd, off, unix.SEEK_DATA)
		return err
	})
	switch {
	case errors.Is(err, unix.ENXIO):
		return s.size.Load()
	case err != nil:
		panic(fmt.Sprintf("device: find data of a segment in memory: %v", err))
	}
	return at &^ (pageBytes - 1)
}
