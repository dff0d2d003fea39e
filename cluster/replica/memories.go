package replica

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePage is how much the kernel makes zero at a time where it can.
const largePage = 2 << 20

// memories are memory to read segments to, used again and again while heirs fetch: fresh
// memory would be made zero, page by page, only to be overwritten.
type memories struct {
	mu   sync.Mutex
	free []*memory
}

// memory is outside of the Go heap, on large pages where there are some.
type memory struct {
	bytes []byte
	whole []byte // the mapping; nil if the system gave none and the heap has it
}

// take gives memory of at least so many bytes.
func (m *memories) take(bytes int) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.free) - 1; i >= 0; i-- {
		if one := m.free[i]; len(one.bytes) >= bytes {
			m.free = append(m.free[:i], m.free[i+1:]...)
			return one
		}
	}
	return newMemory((bytes + largePage - 1) &^ (largePage - 1))
}

func newMemory(bytes int) *memory {
	whole, err := unix.Mmap(-1, 0, bytes+largePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return &memory{bytes: make([]byte, bytes)}
	}
	skip := int(-uintptr(unsafe.Pointer(&whole[0])) % largePage)
	m := &memory{bytes: whole[skip : skip+bytes], whole: whole}
	_ = unix.Madvise(m.bytes, unix.MADV_HUGEPAGE) // A wish.
	return m
}

// give takes memory back that nobody looks at any more.
func (m *memories) give(one *memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, one)
}

// clear gives all of it back to the system that nobody uses.
func (m *memories) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.free {
		if one.whole != nil {
			_ = unix.Munmap(one.whole)
		}
	}
	m.free = nil
}
