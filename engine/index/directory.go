package index

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/engine/record"
)

// levelBits is how many bits of a place one level of the directory resolves.
const levelBits = 16

// kindMask covers the low bits of a directory word, which point to a sub-table
// if they are zero, and else to a directory of that many bits.
const kindMask = 63

// directory finds the sub-table of a place. Root and entries are words:
//
//	0       | sub-table
//	n 1..16 | directory of 1<<n words, for the next n bits of the place
//
// The root is a directory for the first 1 to 16 bits; one of its entries may,
// once it has 16, be a directory for up to 16 more.
//
// Who owns which bytes when: readers load words and follow them, inside a guard.
// Words are stored by the holder of mu. A directory that was doubled keeps its
// last words until the epoch is safe: who still reads it finds sub-tables that
// are current or have moved since, and of the latter the buckets are locked.
type directory struct {
	root uint64
	mu   sync.Mutex
}

// find returns the sub-table that covers p.
func (d *directory) find(p record.Place) table {
	w := atomic.LoadUint64(&d.root)
	for {
		kind := w & kindMask
		if kind == 0 {
			return table(w)
		}
		w = atomic.LoadUint64(entryAt(w, uint64(p)>>(64-kind)))
		p <<= levelBits
	}
}

func entryAt(dir, i uint64) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(nil), uintptr(dir&^kindMask+i*8)))
}

// reach returns the directory that resolves sub-tables of the given depth, made
// wide enough for them, and how many bits are resolved above it. For the holder
// of mu.
func (ix *Index) reach(prefix, depth uint32) (dir uint64, above uint32, err error) {
	slot := &ix.dir.root
	if depth >= levelBits && *slot&kindMask == levelBits {
		entry := entryAt(*slot, uint64(prefix>>levelBits))
		if depth > levelBits || *entry&kindMask != 0 {
			slot, above = entry, levelBits
		}
	}
	dir, err = ix.widen(slot, int(depth-above))
	return dir, above, err
}

// reserve makes room for sub-tables of the given depth, so that replace cannot
// fail afterwards.
func (ix *Index) reserve(prefix, depth uint32) error {
	ix.dir.mu.Lock()
	defer ix.dir.mu.Unlock()
	_, _, err := ix.reach(prefix, depth)
	return err
}

// replace puts low and high in the place of a sub-table of the given prefix and
// depth: each covers half of it, or both are the same and cover the whole.
// The room is reserved.
func (ix *Index) replace(prefix, depth uint32, low, high table) {
	ix.dir.mu.Lock()
	defer ix.dir.mu.Unlock()
	dir, above, err := ix.reach(prefix, low.header().depth)
	if err != nil {
		panic("index: directory was not reserved")
	}
	bits := uint32(dir & kindMask)
	first := uint64(prefix << above >> (32 - bits))
	count := uint64(1) << (bits - (depth - above))
	for i := range count {
		t := low
		if i >= count/2 {
			t = high
		}
		atomic.StoreUint64(entryAt(dir, first+i), uint64(t))
	}
}

// widen returns the directory that the word at slot points to, with at least
// the given number of bits. If it must be made anew, slot points to it then.
func (ix *Index) widen(slot *uint64, need int) (uint64, error) {
	old := *slot
	have := int(old & kindMask)
	if have >= need {
		return old, nil
	}
	at, err := ix.arena.words(need)
	if err != nil {
		return 0, err
	}
	dir := uint64(at) | uint64(need)
	for i := range uint64(1) << need {
		if have == 0 {
			*entryAt(dir, i) = old // A sub-table that has been alone so far.
		} else {
			*entryAt(dir, i) = *entryAt(old, i>>(need-have))
		}
	}
	atomic.StoreUint64(slot, dir)
	if have > 0 {
		ix.epoch.Defer(func() { ix.arena.releaseWords(uintptr(old&^kindMask), have) })
	}
	return dir, nil
}
