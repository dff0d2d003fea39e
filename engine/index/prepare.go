package index

import (
	"math"
	"math/bits"

	"github.com/ostrodb/ostro/engine/record"
)

// Prepare makes room for about so many more entries in the places from first to last, if they are spread evenly there:
// so that those who insert them need not split what is nearly full, and wait for each other. It prepares one
// sub-table at a time and returns where to go on, inside another guard; last+1 is the end. False: there is no
// memory, and the index is as good as before.
func (ix *Index) Prepare(first, last record.Place, entries int, at record.Place) (next record.Place, ok bool) {
	depth := depthFor(first, last, entries)
	for {
		t := ix.dir.find(at)
		if t.header().depth >= depth {
			end := record.Place(t.last())<<32 | math.MaxUint32
			return min(end, last) + 1, true
		}
		if !ix.growBy(t, true) {
			return at, false
		}
	}
}

// depthFor is how finely the space is to be cut for entries in a part of it.
func depthFor(first, last record.Place, entries int) uint32 {
	share := (float64(last-first) + 1) / (1 << 64)
	tables := float64(entries) / share / startEntries
	if tables <= 1 {
		return 0
	}
	return uint32(min(bits.Len64(uint64(min(tables, 1<<maxDepth)-1)), levelBits))
}
