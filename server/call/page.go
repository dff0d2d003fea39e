package call

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// page is what a scan shows at a time: whole buckets of the index, or a part of one. Within a bucket keys have
// the order of their tags, which are distinct. The store's cursors have 48 bits; the 16 above say how tags are made, and
// that of the last key of the bucket that was shown, so that a bucket need not be shown whole. A key that is there all
// the time has its tag all the time, and is not passed over, whatever comes and goes beside it.
type page struct {
	sess   *store.Session
	ground Ground
	db     int
	prefix []byte

	room    []byte
	keys    []found
	shown   int
	looked  int  // records, whosever they are
	bytes   int  // of values that were read
	refused bool // a visit was, or would be too much
	view    store.View
}

// found is a key of a bucket, in room.
type found struct {
	place      record.Place
	tag        uint64
	start, end int
}

const (
	cursorBits  = 48
	pageKeys    = 32      // beyond which a call ends with its bucket
	pageBuckets = 64      // that a call looks at
	pageBytes   = 1 << 20 // of values, beyond which no other is read: a large one is put together first
)

const (
	tagBits = 13
	tagMask = 1<<tagBits - 1
	seeds   = 1 << (16 - tagBits)
)

// tagOf is above 0.
func tagOf(p record.Place, seed uint64) uint64 {
	mixed := (uint64(p) + seed*0xd1342543de82ef95) * 0x9e3779b97f4a7c15
	return max((mixed^mixed>>29)*0xbf58476d1ce4e5b9>>(64-tagBits), 1)
}

// show visits keys with their values from a cursor on. If it cannot go on, what it has shown counts; if that is
// nothing, it says why.
func (p *page) show(s *store.Session, g Ground, db int, cursor uint64, prefix []byte, visit func(key, value []byte) bool) (uint64, store.Status) {
	p.sess, p.ground, p.db, p.prefix, p.shown, p.bytes, p.refused = s, g, db, prefix, 0, 0, false
	before := s.Looked()
	defer func() { p.looked = s.Looked() - before }()
	for range pageBuckets {
		next, st := p.bucket(cursor, visit)
		switch {
		case st != store.OK && p.shown == 0:
			return 0, st
		case st != store.OK || p.shown >= pageKeys || next == 0 || p.refused:
			return next, store.OK
		}
		cursor = next
	}
	return cursor, store.OK
}

// bucket visits those of one bucket, and tells where to go on, also if something is wrong there.
func (p *page) bucket(cursor uint64, visit func(key, value []byte) bool) (uint64, store.Status) {
	at, after := cursor&(1<<cursorBits-1), cursor>>cursorBits&tagMask
	next, st := p.collect(at)
	if st != store.OK {
		return cursor, st
	}
	seed := cursor >> (cursorBits + tagBits)
	if after == 0 {
		seed = p.seed()
	}
	p.tag(seed)
	for i := range p.keys {
		f := &p.keys[i]
		if f.tag <= after {
			continue
		}
		if p.bytes > pageBytes {
			p.refused = true
			return p.cursor(seed, i, after, at), store.OK
		}
		key := p.room[f.start:f.end]
		k := p.sess.Key(p.db, key)
		st := p.sess.Read(&k, &p.view)
		if st == store.NotFound || st == store.OK && p.view.Kind != record.KindString {
			continue
		}
		if st != store.OK || !visit(key, p.view.Value) {
			p.refused = true
			return p.cursor(seed, i, after, at), st
		}
		p.bytes += len(p.view.Value)
		p.shown++
	}
	return next, store.OK
}

// cursor is where key i of the bucket at comes next.
func (p *page) cursor(seed uint64, i int, after, at uint64) uint64 {
	return (seed<<tagBits|p.before(i, after))<<cursorBits | at
}

// seed finds one that gives all keys different tags. If there is none, some may be shown again.
func (p *page) seed() uint64 {
	for seed := range uint64(seeds) {
		if p.tag(seed) {
			return seed
		}
	}
	return 0
}

// tag gives keys their tags, and the order of these; it tells whether all are different.
func (p *page) tag(seed uint64) (distinct bool) {
	for i := range p.keys {
		p.keys[i].tag = tagOf(p.keys[i].place, seed)
	}
	slices.SortFunc(p.keys, func(a, b found) int { return cmp.Compare(a.tag, b.tag) })
	for i := 1; i < len(p.keys); i++ {
		if p.keys[i].tag == p.keys[i-1].tag {
			return false
		}
	}
	return true
}

// before is the tag of the last key before key i that has another one; that of the cursor if there is none.
func (p *page) before(i int, after uint64) uint64 {
	for j := i - 1; j >= 0; j-- {
		if p.keys[j].tag < p.keys[i].tag {
			return max(p.keys[j].tag, after)
		}
	}
	return after
}

// collect finds the keys of a bucket, and where the next one is.
func (p *page) collect(at uint64) (uint64, store.Status) {
	p.room, p.keys = p.room[:0], p.keys[:0]
	return p.sess.Scan(p.db, at, 0, func(key []byte, _ *store.View) {
		if !bytes.HasPrefix(key, p.prefix) {
			return
		}
		place := p.sess.Key(p.db, key).Place
		if p.ground != nil && p.ground.Standing(place) == Away {
			return
		}
		start := len(p.room)
		p.room = append(p.room, key...)
		p.keys = append(p.keys, found{place: place, start: start, end: len(p.room)})
	})
}
