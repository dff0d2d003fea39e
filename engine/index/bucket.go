package index

import (
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/fence"
	"github.com/ostrodb/ostro/internal/invariant"
)

const (
	bucketBytes = 64
	bucketWords = 6
	tagOffset   = 48
	metaOffset  = 60

	lockedBit   = 1 << 0
	frozenBit   = 1 << 1
	addressMask = 1<<48 - 8
	topShift    = 48
)

// meta of a primary bucket: locked 1 | link 11 | sequence 20. The sequence
// counts insertions into the chain; a prober that sleeps through exactly a
// multiple of 2^20 of them, all in one bucket, would be deceived.
// meta of an overflow bucket: link 32. Link n is overflow bucket n-1; 0 is none.
const (
	metaLocked   = 1 << 31
	linkShift    = 20
	linkMask     = 1<<11 - 1
	sequenceMask = 1<<linkShift - 1
)

// bucket is the address of 64 bytes outside the Go heap.
//
// Who owns which bytes when:
//   - A word that is not zero and neither locked nor frozen belongs to whoever
//     wins the compare-and-swap on it. A locked word belongs to the transaction
//     that locked it, except for the frozen bit. A frozen word belongs to nobody.
//   - A word that is zero, its tag, and the links of the chain belong to the
//     holder of the primary bucket's lock (metaLocked). The tag is written
//     before the word is, so who sees the word may read the tag; who needs
//     both from one moment reads the word again.
//   - The lock is taken by compare-and-swap on the meta, and given back by a
//     store that counts the sequence up if something was inserted.
//   - A splitter takes the lock and never gives it back.
type bucket uintptr

func (b bucket) pointer(offset uintptr) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(nil), uintptr(b)+offset)
}

func (b bucket) word(i int) *uint64 { return (*uint64)(b.pointer(uintptr(i) * 8)) }
func (b bucket) meta() *uint32      { return (*uint32)(b.pointer(metaOffset)) }
func (b bucket) load(i int) uint64  { return atomic.LoadUint64(b.word(i)) }
func (b bucket) loadMeta() uint32   { return atomic.LoadUint32(b.meta()) }
func (b bucket) storeMeta(m uint32) { atomic.StoreUint32(b.meta(), m) }
func (b bucket) tags(i int) *uint32 { return (*uint32)(b.pointer(tagOffset + uintptr(i)/2*4)) }

// tag returns the 16 bits of a place that tell the entries of a sub-table apart.
func tag(p record.Place) uint64 { return uint64(p) >> 32 & 0xffff }

// tag returns the tag of word i. Tags are read in pairs, for there are no
// atomic loads of 16 bits.
func (b bucket) tag(i int) uint64 {
	return uint64(atomic.LoadUint32(b.tags(i)) >> (uint(i) % 2 * 16) & 0xffff)
}

// setTag is for the holder of the chain's lock, while word i is zero. The
// store of the word publishes it.
func (b bucket) setTag(i int, x uint64) {
	shift := uint(i) % 2 * 16
	pair := b.tags(i)
	*pair = *pair&^(0xffff<<shift) | uint32(x)<<shift
}

// fill puts an entry into the empty word i, for the holder of the lock.
func (b bucket) fill(i int, p record.Place, word uint64) {
	if invariant.Enabled {
		invariant.Check(b.load(i) == 0, "an entry of the index is overwritten by one for place %x", uint64(p))
	}
	b.setTag(i, tag(p))
	fence.Publish(b.word(i), word)
}

// entry reads word i together with its tag: the word and the known top 32
// bits of the place, shifted down. The word is zero if there is none.
func (b bucket) entry(i int) (word, top uint64) {
	for {
		word = b.load(i)
		if word == 0 {
			return 0, 0
		}
		top = word>>topShift<<16 | b.tag(i)
		// The tag changes only while the word is zero.
		if again := b.load(i); (again^word)&^frozenBit == 0 {
			return again, top
		}
	}
}

// empty returns the first empty word from one on, or -1.
func (b bucket) empty(from int) int {
	for i := from; i < bucketWords; i++ {
		if b.load(i) == 0 {
			return i
		}
	}
	return -1
}

func wordOf(p record.Place, a record.Address) uint64 {
	return uint64(p)&^(1<<topShift-1) | uint64(a)
}

func addressOf(word uint64) record.Address { return record.Address(word & addressMask) }

// holds tells whether an entry of a place leads to a. Those of others may: who knows records by their places only has one address for
// all. It is for checks.
func (b bucket) holds(p record.Place, a record.Address) bool {
	for i := range bucketWords {
		if (b.load(i)^wordOf(p, a))&^(lockedBit|frozenBit) == 0 && b.tag(i) == tag(p) {
			return true
		}
	}
	return false
}
