package index

import "github.com/ostrodb/ostro/engine/record"

// position is where a walk stands. A walk goes through the sub-tables in the
// order of their places, and in each through the buckets. When a sub-table is
// split under way, the walk goes on over its range as it was: bucket b of all
// that cover the range now, then b+1. As entries keep their bucket numbers,
// each is met exactly once.
type position struct {
	at     uint32 // top 32 bits of the first place of the sub-table to visit
	depth  uint32 // of the sub-table when the walk entered it, which gives the range
	bucket uint32
}

// As a number: at 32 | depth 6 | bucket 10. Zero is the start.
func (w position) cursor() uint64 {
	return uint64(w.at)<<16 | uint64(w.depth)<<10 | uint64(w.bucket)
}

// positionOf accepts any number, for cursors come from users.
func positionOf(cursor uint64) position {
	return position{
		at:     uint32(cursor >> 16),
		depth:  min(uint32(cursor>>10&63), maxDepth),
		bucket: uint32(cursor & bucketMask),
	}
}

func (w position) first() uint32 { return w.at &^ w.rest() }
func (w position) last() uint32  { return w.at | w.rest() }
func (w position) rest() uint32  { return uint32(1<<(maxDepth-w.depth) - 1) }

// Passed is the place that a walk with this cursor has come to: all entries at
// lower places were visited. A walk of another index can go on from there.
func Passed(cursor uint64) record.Place { return record.Place(positionOf(cursor).first()) << 32 }

// At is the cursor of a walk that has come to a place; never 0.
func At(p record.Place) uint64 { return position{at: uint32(p >> 32), depth: maxDepth}.cursor() }

// entering tells whether a walk is at the very start of a range.
func (w position) entering() bool { return w.bucket == 0 && w.at == w.first() }

// Stretch is the places that a walk with this cursor is in the midst of: of those that it enters the first 2^32 only.
func Stretch(cursor uint64) (first, last record.Place) {
	w := positionOf(cursor)
	if w.entering() {
		w.depth = maxDepth
	}
	return w.places()
}

func (w position) places() (first, last record.Place) {
	return record.Place(w.first()) << 32, record.Place(w.last())<<32 | (1<<32 - 1)
}

// StepOn visits one bucket of a walk that goes on in other indexes from to on. Cursors mean the same in all of them, for an
// entry's bucket is a part of its place. So the walk enters no range that reaches beyond to, unless even its first 2^32
// places do, of which it visits those up to there. The cursor is not 0.
func (ix *Index) StepOn(from, to record.Place, cursor uint64, f func(pr *Probe) bool) (next uint64) {
	w := positionOf(cursor)
	t := ix.dir.find(record.Place(w.at) << 32)
	if w.entering() {
		w.depth = w.depthWithin(t.header().depth, to)
	}
	first, last := w.places()
	pr := &Probe{table: t}
	pr.visit(int(w.bucket), max(from, first), min(to, last), f)
	if !w.advance(t) {
		return 0
	}
	return w.cursor()
}

// depthWithin is the least depth from one on of a range that begins at w.at and does not reach beyond to.
func (w position) depthWithin(depth uint32, to record.Place) uint32 {
	for w.depth = depth; w.depth < maxDepth; w.depth++ {
		if _, last := w.places(); w.first() == w.at && last <= to {
			break
		}
	}
	return w.depth
}

// table returns the sub-table to visit. A walk that stands at the very start of
// a range takes for its range what one sub-table covers now.
func (ix *Index) table(w *position) table {
	t := ix.dir.find(record.Place(w.at) << 32)
	if w.entering() {
		w.at, w.depth = t.header().prefix, t.header().depth
	}
	return t
}

// advance goes on after bucket w.bucket of t; false at the end of all places.
func (w *position) advance(t table) bool {
	if last := t.last(); last < w.last() {
		w.at = last + 1
		return true
	}
	w.bucket++
	if w.bucket < primaryBuckets {
		w.at = w.first()
		return true
	}
	end := w.last()
	*w = position{at: end + 1, depth: maxDepth}
	return end != 1<<32-1
}

// Step visits the next buckets of the whole index and returns the cursor to go
// on with, in another guard if need be; 0 begins, and 0 says that all was
// visited. Every entry that is present during the whole scan is visited, exactly
// once even if the index grows meanwhile; an entry that is removed and inserted
// again may be visited twice. f returns false to stop after the current bucket.
// Placeholders are left out.
func (ix *Index) Step(cursor uint64, buckets int, f func(pr *Probe) bool) (next uint64) {
	return ix.StepRange(0, ^record.Place(0), cursor, buckets, f)
}

// StepRange is Step over the entries whose places may lie in [from, to]: those
// for which some place there has their known bits. Walks of disjoint ranges may
// run in parallel.
func (ix *Index) StepRange(from, to record.Place, cursor uint64, buckets int, f func(pr *Probe) bool) (next uint64) {
	w := positionOf(cursor)
	if cursor == 0 {
		w = position{at: uint32(from >> 32), depth: maxDepth}
	}
	pr := &Probe{}
	for n, more := 0, true; more && (n < buckets || n == 0); n++ {
		t := ix.table(&w)
		if w.first() > uint32(to>>32) {
			return 0
		}
		pr.table = t
		more = pr.visit(int(w.bucket), from, to, f)
		if !w.advance(t) {
			return 0
		}
	}
	return w.cursor()
}

// Found is what a walk knows of an entry: its address, and its place as Known gives it.
type Found struct {
	At    record.Address
	Known record.Place
}

// Collect is StepRange of one bucket that appends what it finds: for those who walk much, and change nothing.
func (ix *Index) Collect(from, to record.Place, cursor uint64, into []Found) (all []Found, next uint64) {
	w := positionOf(cursor)
	if cursor == 0 {
		w = position{at: uint32(from >> 32), depth: maxDepth}
	}
	t := ix.table(&w)
	if w.first() > uint32(to>>32) {
		return into, 0
	}
	b := int(w.bucket)
	inside := t.header().prefix > uint32(from>>32) && t.last() < uint32(to>>32)
	at := t.bucketAt(b)
	for first := true; at != 0; first = false {
		for i := range bucketWords {
			word := at.load(i)
			if addressOf(word) == 0 {
				continue
			}
			top := word>>topShift<<16 | at.tag(i)
			if again := at.load(i); again != word { // As in entry.
				if word, top = at.entry(i); addressOf(word) == 0 {
					continue
				}
			}
			if place := record.Place(top<<32 | uint64(b)); inside || mayLie(place, from, to) {
				into = append(into, Found{addressOf(word), place})
			}
		}
		at = t.next(at.loadMeta(), first)
	}
	if !w.advance(t) {
		return into, 0
	}
	return into, w.cursor()
}

// Ahead gives the first and the last place that the next bucket of a StepRange may have
// entries of.
func (ix *Index) Ahead(from record.Place, cursor uint64) (first, last record.Place) {
	w := positionOf(cursor)
	if cursor == 0 {
		w = position{at: uint32(from >> 32), depth: maxDepth}
	}
	ix.table(&w)
	return w.places()
}

// visit calls f for the entries of one bucket; false if one of the calls was.
func (pr *Probe) visit(b int, from, to record.Place, f func(pr *Probe) bool) bool {
	more := true
	t := pr.table
	pr.primary = t.bucketAt(b)
	pr.meta = pr.primary.loadMeta()
	pr.matches = 0
	for at := range t.chain(b) {
		for i := range bucketWords {
			word, top := at.entry(i)
			place := record.Place(top<<32 | uint64(b))
			if addressOf(word) == 0 || !mayLie(place, from, to) {
				continue
			}
			pr.stand(at, i, word, place)
			if !f(pr) {
				more = false
			}
		}
	}
	return more
}

// stand puts the probe at an entry.
func (pr *Probe) stand(at bucket, i int, word uint64, known record.Place) {
	pr.at, pr.index = at, uint8(i)
	pr.Word, pr.place = word, known
}

// mayLie tells whether a place with the known bits of p lies in [from, to].
func mayLie(p, from, to record.Place) bool {
	least := p
	if p>>32 == from>>32 {
		least = from&^bucketMask | p&bucketMask
		if least < from {
			least += primaryBuckets
		}
	}
	return least >= from && least <= to && least>>32 == p>>32
}
