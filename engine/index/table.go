package index

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ostrodb/ostro/engine/record"
)

const (
	primaryBuckets  = 1024
	bucketMask      = primaryBuckets - 1
	overflowBuckets = 235 // so that 26 sub-tables fill a chunk
	leastOverflow   = 140 // of them, which a sub-table may use before it splits
	tableBytes      = (1 + primaryBuckets + overflowBuckets) * bucketBytes

	// maxDepth is how many bits of a place the index knows and can split by.
	maxDepth = 32
)

// States of a sub-table.
const (
	building  = iota // in the making, or free
	live             // the directory leads to it
	splitting        // being frozen by one splitter
	moved            // replaced in the directory; waits for its epoch
)

// table is the address of a sub-table: a header line, the primary buckets, the
// overflow buckets.
//
// Who owns which bytes when: while building, all of it belongs to its maker.
// Its header's plain fields never change afterwards. Used belongs to
// whoever counts it up by compare-and-swap, and with it the overflow bucket of
// that number, which was zeroed before. Whoever turns the state from live to
// splitting may freeze the buckets and must end in moved, or turn back to live
// before the first freeze. For the buckets see there.
type table uintptr

// header of a sub-table. No lookup touches it but SeekNear.
type header struct {
	state    atomic.Uint32
	used     atomic.Uint32 // overflow buckets handed out
	limit    uint32        // overflow buckets to hand out before a split
	capacity uint32        // overflow buckets that there are
	depth    uint32
	prefix   uint32 // top 32 bits of the first place covered
	deep     bool   // first links are fixed: overflow bucket b belongs to primary b
	number   int32  // arena's: position among the sub-tables; -1 if alone in a mapping
	dirty    bool   // arena's: has been used before
}

func (t table) header() *header {
	return (*header)(unsafe.Add(unsafe.Pointer(nil), uintptr(t)))
}

// covers tells whether p is one of the places of the sub-table.
func (t table) covers(p record.Place) bool {
	return uint32(p>>32)-t.header().prefix <= uint32(1<<(maxDepth-t.header().depth)-1)
}

// primary returns the bucket of p.
func (t table) primary(p record.Place) bucket { return t.bucketAt(int(p & bucketMask)) }

func (t table) bucketAt(b int) bucket {
	return bucket(uintptr(t) + bucketBytes + uintptr(b)*bucketBytes)
}

// overflow returns the overflow bucket of a link that is not zero.
func (t table) overflow(link uint32) bucket {
	return bucket(uintptr(t) + (primaryBuckets+uintptr(link))*bucketBytes)
}

// next returns the bucket after b in the chain, or 0. m is the meta of b, and
// first tells whether b is a primary bucket.
func (t table) next(m uint32, first bool) bucket {
	if first {
		m = m >> linkShift & linkMask
	}
	if m == 0 {
		return 0
	}
	return t.overflow(m)
}

// publish says that the directory leads to the sub-table: from now on it may be
// split and drawn from.
func (t table) publish() { t.header().state.Store(live) }

// describe says what a new sub-table covers. Places are spread so evenly that
// all sub-tables would split at nearly the same time; limits that differ by a
// third spread the splits over an eighth of the entries.
func (t table) describe(prefix, depth uint32) {
	h := t.header()
	h.prefix, h.depth = prefix, depth
	if h.deep = h.capacity > overflowBuckets; h.deep {
		h.limit = h.capacity
		h.used.Store(primaryBuckets) // One for each primary bucket, see extend.
		return
	}
	luck := mix(uint64(prefix)<<32|uint64(depth)) % (overflowBuckets - leastOverflow + 1)
	h.limit = leastOverflow + uint32(luck)
}

// extend hands out an overflow bucket to the chain of primary b; first if the
// chain has none yet. 0 means that limit are in use.
func (t table) extend(b int, first bool, limit uint32) uint32 {
	h := t.header()
	if first && h.deep {
		return uint32(b) + 1
	}
	for {
		used := h.used.Load()
		if used >= limit {
			return 0
		}
		if h.used.CompareAndSwap(used, used+1) {
			return used + 1
		}
	}
}

// last returns the last of the top 32 bits that the sub-table covers.
func (t table) last() uint32 {
	h := t.header()
	return h.prefix | uint32(1<<(32-h.depth)-1)
}

// awaitMove returns when nobody is splitting the sub-table.
func (t table) awaitMove() {
	for round := 0; t.header().state.Load() == splitting; round++ {
		relax(round)
	}
}

// relax passes time in a spin loop: a little on the processor, then among
// goroutines, one of which may be who we wait for. That one may also be on a thread
// of low priority that has lost its core to us: so in the end the core is given up.
func relax(round int) {
	switch {
	case round > 2048:
		time.Sleep(20 * time.Microsecond)
	case round > 128:
		runtime.Gosched()
	}
}
