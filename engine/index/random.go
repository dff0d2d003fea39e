package index

import "github.com/ostrodb/ostro/engine/record"

// randomTries is how many buckets Random draws before it searches. Skewed places
// may leave most sub-tables empty.
const randomTries = 256

// Random goes to an entry drawn by the random number r; false if the index
// has none. Sub-tables, which are of similar size, are drawn evenly, then buckets;
// a bucket with few entries is often rejected, so that its entries do not
// come more often than others. Where nearly all is empty, and past the bits that
// can be split by, it is less fair.
func (ix *Index) Random(r uint64, pr *Probe) bool {
	tables := *ix.arena.numbered.Load()
	for range randomTries {
		r = mix(r)
		t := tables[r>>32%uint64(len(tables))]
		// Live means published: then the caller's guard keeps it in place.
		if t.header().state.Load() != live {
			continue
		}
		b := int(r >> 16 & bucketMask)
		n := t.population(b)
		if n == 0 || n < int(r&7) {
			continue
		}
		if pr.pick(t, b, int(r>>3&0xfff)%n) {
			return true
		}
	}
	return ix.anyAfter(mix(r), pr)
}

// anyAfter goes to the first entry after a random bucket.
func (ix *Index) anyAfter(r uint64, pr *Probe) bool {
	w := position{at: uint32(r >> 32), depth: maxDepth}
	ix.table(&w)
	w.bucket = uint32(r & bucketMask)
	for range 2 { // Once to the end, once from the start.
		for {
			t := ix.table(&w)
			if pr.pick(t, int(w.bucket), 0) {
				return true
			}
			if !w.advance(t) {
				break
			}
		}
		w = position{}
	}
	return false
}

// population counts the entries of a bucket.
func (t table) population(b int) int {
	n := 0
	for at := range t.chain(b) {
		n += bucketWords - at.empties()
	}
	return n
}

// pick goes to entry n of a bucket, or to the last before it.
func (pr *Probe) pick(t table, b, n int) (found bool) {
	pr.table, pr.primary = t, t.bucketAt(b)
	pr.meta, pr.matches = pr.primary.loadMeta(), 0
	for at := range t.chain(b) {
		for i := range bucketWords {
			word, top := at.entry(i)
			if addressOf(word) == 0 {
				continue
			}
			pr.stand(at, i, word, record.Place(top<<32|uint64(b)))
			if found = true; n == 0 {
				return true
			}
			n--
		}
	}
	return found
}

// mix is the finisher of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
