package index

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	chunkBytes     = 2 << 20
	tablesPerChunk = chunkBytes / tableBytes
)

// arena gives out memory outside the Go heap: sub-tables from chunks that
// are aligned for huge pages, directories from chunks of their own. Chunks are
// kept for reuse until release. It may be shared by goroutines.
type arena struct {
	mu     sync.Mutex
	chunks []mapping
	closed bool
	free   []table                  // cleared when taken, if dirty
	dirs   [levelBits + 1][]uintptr // free directories by the logarithm of their words
	spare  span                     // rest of the newest chunk for directories

	limit    int64                   // bytes to map at most; 0: as many as the system gives
	numbered atomic.Pointer[[]table] // every sub-table of standard size, replaced when it grows
	bytes    atomic.Int64
}

type mapping struct {
	base unsafe.Pointer
	size uintptr
}

type span struct{ from, to uintptr }

func newArena() *arena {
	a := &arena{}
	a.numbered.Store(&[]table{})
	return a
}

// table returns a zeroed sub-table with room for the given overflow buckets.
func (a *arena) table(capacity uint32) (table, error) {
	if capacity > overflowBuckets {
		return a.largeTable(capacity)
	}
	t, err := a.takeTable()
	if err != nil {
		return 0, err
	}
	h := t.header()
	if number := h.number; h.dirty {
		clear(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), uintptr(t))), tableBytes))
		h.number = number
	}
	h.capacity = overflowBuckets
	return t, nil
}

func (a *arena) takeTable() (table, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.free) == 0 {
		if err := a.addTables(); err != nil {
			return 0, err
		}
	}
	t := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	return t, nil
}

// addTables cuts a new chunk into sub-tables.
func (a *arena) addTables() error {
	m, err := a.mapChunk(chunkBytes)
	if err != nil {
		return err
	}
	adviseHuge(m)
	old := *a.numbered.Load()
	all := append(old[:len(old):len(old)], make([]table, tablesPerChunk)...)
	for i := range tablesPerChunk {
		t := table(uintptr(m.base) + uintptr(i)*tableBytes)
		t.header().number = int32(len(old) + i)
		all[len(old)+i] = t
		a.free = append(a.free, t)
	}
	a.numbered.Store(&all)
	return nil
}

// largeTable maps a sub-table that is larger than the others.
func (a *arena) largeTable(capacity uint32) (table, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, err := a.mapChunk(largeBytes(capacity))
	if err != nil {
		return 0, err
	}
	t := table(uintptr(m.base))
	t.header().capacity, t.header().number = capacity, -1
	return t, nil
}

func largeBytes(capacity uint32) uintptr {
	n := (1 + primaryBuckets + uintptr(capacity)) * bucketBytes
	return (n + chunkBytes - 1) &^ (chunkBytes - 1)
}

// release takes back a sub-table that nobody can reach. It may come late, after
// close.
func (a *arena) release(t table) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	h := t.header()
	h.dirty = true
	h.state.Store(building)
	if h.number >= 0 {
		a.free = append(a.free, t)
		return
	}
	for i, m := range a.chunks {
		if uintptr(m.base) == uintptr(t) {
			a.chunks = append(a.chunks[:i], a.chunks[i+1:]...)
			a.unmap(m)
			return
		}
	}
}

// words returns zeroed memory for a directory of 1<<log words, on a cache line.
func (a *arena) words(log int) (uintptr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	log = max(log, 3)
	if n := len(a.dirs[log]); n > 0 {
		at := a.dirs[log][n-1]
		a.dirs[log] = a.dirs[log][:n-1]
		clear(wordsAt(at, log))
		return at, nil
	}
	size := uintptr(8) << log
	if a.spare.to-a.spare.from < size {
		m, err := a.mapChunk(chunkBytes)
		if err != nil {
			return 0, err
		}
		a.keepSpare()
		a.spare = span{uintptr(m.base), uintptr(m.base) + m.size}
	}
	at := a.spare.from
	a.spare.from += size
	return at, nil
}

// keepSpare puts what is left of the chunk for directories on the free lists.
func (a *arena) keepSpare() {
	for s := &a.spare; s.from < s.to; {
		log := min(bits.Len64(uint64(s.to-s.from))-1-3, len(a.dirs)-1)
		a.dirs[log] = append(a.dirs[log], s.from)
		s.from += uintptr(8) << log
	}
}

// releaseWords takes back a directory that nobody can reach.
func (a *arena) releaseWords(at uintptr, log int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	log = max(log, 3)
	a.dirs[log] = append(a.dirs[log], at)
}

func wordsAt(at uintptr, log int) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(nil), at)), 1<<log)
}

// mapChunk maps memory that begins at a multiple of the chunk size, so that the
// kernel can back it with huge pages. It maps one chunk too much and gives the
// ends back; taking the highest fit lets neighbours merge into one mapping.
func (a *arena) mapChunk(size uintptr) (mapping, error) {
	if a.limit > 0 && a.bytes.Load()+int64(size) > a.limit {
		return mapping{}, fmt.Errorf("index: map %d bytes: %w", size, unix.ENOMEM)
	}
	p, err := unix.MmapPtr(-1, 0, nil, size+chunkBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return mapping{}, fmt.Errorf("index: map %d bytes: %w", size, err)
	}
	head := chunkBytes - uintptr(p)%chunkBytes
	if uintptr(p)%chunkBytes == 0 {
		head = chunkBytes
	}
	m := mapping{unsafe.Add(p, head), size}
	if err := unix.MunmapPtr(p, head); err != nil {
		return mapping{}, fmt.Errorf("index: trim a mapping: %w", err)
	}
	if tail := chunkBytes - head; tail > 0 {
		if err := unix.MunmapPtr(unsafe.Add(m.base, size), tail); err != nil {
			return mapping{}, fmt.Errorf("index: trim a mapping: %w", err)
		}
	}
	a.chunks = append(a.chunks, m)
	a.bytes.Add(int64(size))
	return m, nil
}

func (a *arena) unmap(m mapping) {
	if err := unix.MunmapPtr(m.base, m.size); err != nil {
		panic(fmt.Sprintf("index: unmap %d bytes at %p: %v", m.size, m.base, err))
	}
	a.bytes.Add(-int64(m.size))
}

// close unmaps everything.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.chunks {
		a.unmap(m)
	}
	a.closed = true
	a.chunks, a.free, a.spare = nil, nil, span{}
	clear(a.dirs[:])
	a.numbered.Store(&[]table{})
}
