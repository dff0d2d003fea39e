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

	allowance Allowance // nil: none is needed
	taken     int64
	short     error // why it could not grow, in this call,
	shortOf   int64 // by so much
	refused   bool  // it could not, at some time
}

// Allowance is what instances take their memory from: all of a tenant's from the same.
type Allowance interface {
	Take(bytes int64) error
	Give(bytes int64)
	// Hold asks for bytes that a call keeps until its end, beside memory: a long response, writes. Release gives them back.
	Hold(bytes int64) error
	Release(bytes int64)
	// Scarce tells that little is left: instances without work are not kept.
	Scarce() bool
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
	if size > uint64(len(m.all)) || !m.take(int64(size)-int64(len(m.buf))) {
		return nil
	}
	m.buf = m.all[:size]
	return m.buf
}

// take has the tenant's allowance pay for more. A guest that gets none sees that its memory does not grow; an instance
// without its first pages cannot be.
func (m *memory) take(more int64) bool {
	if m.allowance == nil || more <= 0 {
		return true
	}
	if m.short != nil && more >= m.shortOf {
		return false // As before. To ask has the tenant's idle instances looked for.
	}
	if m.short = m.allowance.Take(more); m.short != nil {
		m.refused, m.shortOf = true, more
		if len(m.buf) == 0 {
			m.err = m.short
		}
		return false
	}
	m.taken += more
	return true
}

// smallTables is up to which size tables are in the price of an instance, as all else is that the runtime has of one.
const smallTables = 4 << 10

// takeTables has the allowance pay for tables, which the runtime makes: a word an element.
func (m *memory) takeTables(elements int) error {
	bytes := int64(elements) * 8
	if m.allowance == nil || bytes <= smallTables {
		return nil
	}
	if err := m.allowance.Take(bytes); err != nil {
		return err
	}
	m.taken += bytes
	return nil
}

// Free gives the memory back when the instance is closed.
func (m *memory) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all)
		m.all, m.buf = nil, nil
	}
	if m.taken > 0 {
		m.allowance.Give(m.taken)
		m.taken = 0
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
