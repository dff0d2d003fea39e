package index

import (
	"math/bits"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// matches is a set of a bucket's words. Its bits lie as two loads of tags leave
// them: word 0 to 5 at bit 0, 16, 32, 48, 2, 18.
type matches uint64

// next returns the number of a word of the set, which is not empty.
func (m matches) next() int { return int(m.nextOffset() / 8) }

// nextOffset is where the word of next lies in its bucket.
func (m matches) nextOffset() uintptr {
	bit := uintptr(bits.TrailingZeros64(uint64(m)))
	return bit>>1&^7 + bit&2<<4
}

const (
	laneOnes = 0x0001000100010001
	laneTops = 0x8000800080008000
)

// match returns the words that may be of place p: those with its tag, all six
// compared at once without a branch, for nobody could predict one. An empty word
// keeps the tag of its last entry. locked tells whether the bucket is a primary
// one and locked.
func (b bucket) match(p record.Place) (m matches, locked bool) {
	want := tag(p) * laneOnes
	first := atomic.LoadUint64((*uint64)(b.pointer(tagOffset))) ^ want
	rest := atomic.LoadUint64((*uint64)(b.pointer(tagOffset + 8)))
	return matches(zeroLanes(first)>>15 | zeroLanes(rest^want)&(1<<32-1)>>13), int64(rest) < 0
}

// zeroLanes sets the top bit of each 16-bit lane of x that is zero.
func zeroLanes(x uint64) uint64 {
	const rest = ^uint64(laneTops)
	return ^((x&rest + rest) | x) & laneTops
}

// sameTop tells whether a word is of a place with the top 16 bits of p.
func sameTop(word uint64, p record.Place) bool { return word^uint64(p) < 1<<topShift }
