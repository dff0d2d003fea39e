package call

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// page is what a scan shows at a time: whole buckets of the index, or a part of one. Within a bucket keys have
// the order of their tags. The store's cursors have 48 bits; the 16 above are the tag of the last key of the bucket
// that was shown, so that a bucket need not be shown whole. A key that is there all the time has its tag all the
// time, and is not passed over, whatever comes and goes beside it.
type page struct {
	sess   *store.Session
	ground Ground
	db     int
	prefix []byte

	room    []byte
	keys    []found
	shown   int
	refused bool // a visit was
	view    store.View
}

// found is a key of a bucket, in room.
type found struct {
	place      record.Place
	start, end int
}

const (
	cursorBits  = 48
	pageKeys    = 32 // beyond which a call ends with its bucket
	pageBuckets = 64 // that a call looks at
)

// tag is above 0.
func (f *found) tag() uint64 { return uint64(f.place)&0x7fff + 1 }

// show visits keys with their values from a cursor on. If it cannot go on, what it has shown counts; if that is
// nothing, it says why.
func (p *page) show(s *store.Session, g Ground, db int, cursor uint64, prefix []byte, visit func(key, value []byte) bool) (uint64, store.Status) {
	p.sess, p.ground, p.db, p.prefix, p.shown, p.refused = s, g, db, prefix, 0, false
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
	at, after := cursor&(1<<cursorBits-1), cursor>>cursorBits
	next, st := p.collect(at)
	if st != store.OK {
		return cursor, st
	}
	for i := range p.keys {
		f := &p.keys[i]
		if f.tag() <= after {
			continue
		}
		key := p.room[f.start:f.end]
		k := p.sess.Key(p.db, key)
		switch st := p.sess.Read(&k, &p.view); {
		case st == store.NotFound || st == store.OK && p.view.Kind != record.KindString:
			continue
		case st != store.OK:
			return p.before(i, after)<<cursorBits | at, st
		}
		if !visit(key, p.view.Value) {
			p.refused = true
			return p.before(i, after)<<cursorBits | at, store.OK
		}
		p.shown++
	}
	return next, store.OK
}

// before is the tag of the last key before key i that has another one; that of the cursor if there is none.
func (p *page) before(i int, after uint64) uint64 {
	for j := i - 1; j >= 0; j-- {
		if p.keys[j].tag() < p.keys[i].tag() {
			return max(p.keys[j].tag(), after)
		}
	}
	return after
}

// collect finds the keys of a bucket, and where the next one is.
func (p *page) collect(at uint64) (uint64, store.Status) {
	p.room, p.keys = p.room[:0], p.keys[:0]
	next, st := p.sess.Scan(p.db, at, 0, func(key []byte, _ *store.View) {
		if !bytes.HasPrefix(key, p.prefix) {
			return
		}
		place := p.sess.Key(p.db, key).Place
		if p.ground != nil && p.ground.Standing(place) == Away {
			return
		}
		start := len(p.room)
		p.room = append(p.room, key...)
		p.keys = append(p.keys, found{place, start, len(p.room)})
	})
	slices.SortFunc(p.keys, func(a, b found) int { return cmp.Compare(a.tag(), b.tag()) })
	return next, st
}
