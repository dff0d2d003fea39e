package index

import (
	"sync/atomic"
)

// grow replaces a sub-table that has run out of overflow buckets: by two that
// share its entries, or by one of its depth if that gives room. One goroutine
// does it; others wait for it. False: there is no memory.
func (ix *Index) grow(t table) bool { return ix.growBy(t, false) }

// growBy is grow; halve has two take its place also if one would do.
func (ix *Index) growBy(t table, halve bool) bool {
	h := t.header()
	if !h.state.CompareAndSwap(live, splitting) {
		t.awaitMove()
		return true
	}
	s, err := ix.plan(t, halve)
	if err != nil {
		h.state.Store(live)
		return false
	}
	for b := range primaryBuckets {
		freeze(t, b)
		s.copyBucket(b)
	}
	ix.replace(h.prefix, h.depth, s.low.table, s.high.table)
	s.low.table.publish()
	s.high.table.publish()
	h.state.Store(moved)
	ix.epoch.Defer(func() { ix.arena.release(t) })
	return true
}

// split is the work of one splitter.
type split struct {
	old       table
	bit       uint32 // of an entry's top 32 bits: set goes high
	low, high filler
}

// plan takes the memory for the successors of t before anything is frozen.
func (ix *Index) plan(t table, halve bool) (*split, error) {
	h := t.header()
	s := &split{old: t}
	capacity, depth := uint32(overflowBuckets), h.depth+1
	room := h.limit
	if h.deep {
		room -= primaryBuckets
	}
	switch {
	case !halve && overflowNeeded(t) <= room/2: // Removals left gaps: what remains fits well, packed.
		capacity, depth = h.capacity, h.depth
	case h.depth == maxDepth: // Not splittable: let the chains grow.
		capacity, depth = max(2*h.capacity, 2*primaryBuckets), h.depth
	}
	if err := ix.reserve(h.prefix, depth); err != nil {
		return nil, err
	}
	if err := ix.build(&s.low, h.prefix, depth, capacity); err != nil {
		return nil, err
	}
	if depth == h.depth {
		ix.counts.rebuilds.Add(1)
		s.high = s.low
		return s, nil
	}
	s.bit = 1 << (31 - h.depth)
	if err := ix.build(&s.high, h.prefix|s.bit, depth, capacity); err != nil {
		ix.arena.release(s.low.table)
		return nil, err
	}
	ix.counts.splits.Add(1)
	return s, nil
}

func (ix *Index) build(f *filler, prefix, depth, capacity uint32) error {
	t, err := ix.arena.table(capacity)
	if err != nil {
		return err
	}
	t.describe(prefix, depth)
	f.table = t
	return nil
}

// overflowNeeded estimates the overflow buckets that t would use if packed.
func overflowNeeded(t table) uint32 {
	needed := 0
	for b := range primaryBuckets {
		n := 0
		for i := range t.chain(b) {
			n += bucketWords - i.empties()
		}
		needed += max(n-1, 0) / bucketWords
	}
	return uint32(needed)
}

func (b bucket) empties() int {
	n := 0
	for i := range bucketWords {
		if b.load(i) == 0 {
			n++
		}
	}
	return n
}

// chain yields the buckets of primary bucket b.
func (t table) chain(b int) func(yield func(bucket) bool) {
	return func(yield func(bucket) bool) {
		at := t.bucketAt(b)
		for first := true; at != 0; first = false {
			if !yield(at) {
				return
			}
			at = t.next(at.loadMeta(), first)
		}
	}
}

// freeze locks bucket b for good and makes its words immutable.
func freeze(t table, b int) {
	primary := t.bucketAt(b)
	for round := 0; ; round++ {
		m := primary.loadMeta()
		if m&metaLocked == 0 && atomic.CompareAndSwapUint32(primary.meta(), m, m|metaLocked) {
			break
		}
		relax(round)
	}
	for at := range t.chain(b) {
		for i := range bucketWords {
			freezeWord(at.word(i))
		}
	}
}

// freezeWord leaves an empty word empty: the bucket's lock keeps it so.
func freezeWord(w *uint64) {
	for {
		old := atomic.LoadUint64(w)
		if old == 0 || atomic.CompareAndSwapUint64(w, old, old|frozenBit) {
			return
		}
	}
}

// copyBucket shares a frozen bucket out among the successors, locks included.
func (s *split) copyBucket(b int) {
	s.low.begin(b)
	s.high.begin(b)
	for at := range s.old.chain(b) {
		for i := range bucketWords {
			word := at.load(i)
			if word == 0 {
				continue
			}
			tag := at.tag(i)
			f := &s.low
			if uint32(word>>topShift<<16|tag)&s.bit != 0 {
				f = &s.high
			}
			f.add(tag, word&^frozenBit)
		}
	}
}

// filler fills a sub-table that nobody else sees yet, bucket by bucket. Packed
// chains need no more overflow buckets than those they come from, so there
// is always room, if not below the limit.
type filler struct {
	table  table
	number int // of the primary bucket
	at     bucket
	next   int // word to fill
}

func (f *filler) begin(b int) {
	f.number, f.at, f.next = b, f.table.bucketAt(b), 0
}

func (f *filler) add(tag, word uint64) {
	if f.next == bucketWords {
		f.extend()
	}
	f.at.setTag(f.next, tag)
	*f.at.word(f.next) = word
	f.next++
}

func (f *filler) extend() {
	primary := f.table.bucketAt(f.number)
	first := f.at == primary
	link := f.table.extend(f.number, first, f.table.header().capacity)
	if link == 0 {
		panic("index: a packed chain is longer than it was")
	}
	if first {
		*primary.meta() = link << linkShift
	} else {
		*f.at.meta() = link
	}
	f.at, f.next = f.table.overflow(link), 0
}
