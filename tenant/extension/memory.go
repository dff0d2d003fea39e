package extension

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// memory is the linear memory of one instance, outside of the Go heap. All that it may grow to is reserved at once, so
// it never moves, and pages come when they are touched.
type memory struct {
	all []byte // reserved
	buf []byte // what the guest has
	err error
}

var _ experimental.MemoryAllocator = (*memory)(nil)

// Allocate is called once, by the instantiation that the memory is for.
func (m *memory) Allocate(_, most uint64) experimental.LinearMemory {
	size := max(int(most), unix.Getpagesize())
	m.all, m.err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if m.err != nil {
		m.err = fmt.Errorf("reserve %d bytes for a function's memory: %w", size, m.err)
		return m
	}
	// Huge pages would make every instance as large as one.
	_ = unix.Madvise(m.all, unix.MADV_NOHUGEPAGE)
	return m
}

// Reallocate changes the size that the guest sees.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	m.buf = m.all[:size]
	return m.buf
}

// Free gives the memory back when the instance is closed.
func (m *memory) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all)
		m.all, m.buf = nil, nil
	}
}

// at is a part of memory that a guest names, false if it is not all there.
func (m *memory) at(ptr, n uint32) ([]byte, bool) {
	end := uint64(ptr) + uint64(n)
	if end > uint64(len(m.buf)) {
		return nil, false
	}
	return m.buf[ptr:end:end], true
}
