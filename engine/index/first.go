package index

import (
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/prefetch"
)

// First returns the address in the first word of the place's primary bucket
// that has its tag: nearly always the only candidate. It is for those who only
// read. 0 asks for a Seek: there is no such word, or not a plain one.
func (ix *Index) First(p record.Place) record.Address {
	return ix.dir.find(p).primary(p).first(p)
}

// Spot is where the place's search begins. It is good inside one guard, and
// only for a look at once: see FirstAt.
type Spot = bucket

// Approach asks for the cache line of the place's bucket and does not wait.
func (ix *Index) Approach(p record.Place) Spot {
	b := ix.dir.find(p).primary(p)
	prefetch.T0(unsafe.Add(unsafe.Pointer(nil), uintptr(b)))
	return b
}

// FirstAt is First in the bucket that Approach found. If the sub-table was
// replaced meanwhile, its buckets are locked, and the answer is 0.
func FirstAt(at Spot, p record.Place) record.Address { return at.first(p) }

// first calls nothing: how many instructions a lookup takes decides how many
// lookups' cache misses the processor overlaps.
func (b bucket) first(p record.Place) record.Address {
	m, locked := b.match(p)
	if m == 0 || locked {
		return 0
	}
	w := atomic.LoadUint64((*uint64)(b.pointer(m.nextOffset())))
	if w&lockedBit != 0 || !sameTop(w, p) {
		return 0
	}
	return addressOf(w)
}
