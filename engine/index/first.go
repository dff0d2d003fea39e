package index

import (
	"math/bits"

	"github.com/ostrodb/ostro/engine/record"
)

// First returns the address in the first word of the place's primary bucket
// that has its tag: nearly always the only candidate. It is for those who only
// read. 0 asks for a Seek: there is no such word, or not a plain one.
func (ix *Index) First(p record.Place) record.Address {
	b := ix.dir.find(p).primary(p)
	if b.loadMeta()&metaLocked != 0 {
		return 0
	}
	m := b.matches(p)
	if m == 0 {
		return 0
	}
	w := b.load(bits.TrailingZeros8(m))
	if w&lockedBit != 0 || !sameTag(w, p) {
		return 0
	}
	return addressOf(w)
}
