package store

import (
	"math/rand/v2"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Scan goes through a database's keys from a cursor on, 0 at the start. It
// shows at least count keys, unless that takes it through too much else, and
// returns where to go on; 0 is the end. A key that is there during the whole
// scan is seen at least once; so it waits for what is still to arrive where it has come to.
// With Cold nothing is to be used.
func (ss *Session) Scan(db int, cursor uint64, count int, f func(key []byte, v *View)) (uint64, Status) {
	return ss.ScanRange(db, 0, ^record.Place(0), cursor, count, f)
}

// ScanRange is Scan over the keys whose places lie in [from, to]. It takes time
// for those only, and for what shares sub-tables of the index with them.
func (ss *Session) ScanRange(db int, from, to record.Place, cursor uint64, count int, f func(key []byte, v *View)) (uint64, Status) {
	return ss.scan(db, Range{from, to}, cursor, count, f, false)
}

// ScanOn is ScanRange for a scan that goes from store to store: it may go on wherever keys are by then, for cursors mean the
// same everywhere. It begins with index.At(from), and has shown what it is to show here when index.Passed(cursor) is
// beyond to, or the cursor is 0.
func (ss *Session) ScanOn(db int, from, to record.Place, cursor uint64, count int, f func(key []byte, v *View)) (uint64, Status) {
	return ss.scan(db, Range{from, to}, cursor, count, f, true)
}

func (ss *Session) scan(db int, r Range, cursor uint64, count int, f func(key []byte, v *View), on bool) (uint64, Status) {
	t := ss.st.tables.of(db)
	if keys, _ := t.sum(); keys == 0 && !(ss.st.arriving.any() && ss.arrives(r)) {
		return 0, OK // It need not go through everybody else's, which may be on disk.
	}
	part := r != wholeRange
	seen, buckets := 0, 0
	st := OK
	visit := func(pr *index.Probe) bool {
		ss.looked++
		if v, key, s := ss.visit(t, pr); s == OK && st == OK {
			if part && !within(record.PlaceOf(t.id, key), r.First, r.Last) {
				return true // The index does not know all bits of a place.
			}
			seen++
			f(key, &v)
		} else if s == Cold {
			st = Cold
		}
		return true
	}
	for {
		if ss.st.arriving.any() && ss.arrivesAhead(r, cursor) {
			if buckets == 0 {
				return cursor, Cold
			}
			return cursor, st // What was seen counts, and the next call waits.
		}
		if on {
			cursor = ss.st.ix.StepOn(r.First, r.Last, cursor, visit)
		} else {
			cursor = ss.st.ix.StepRange(r.First, r.Last, cursor, 1, visit)
		}
		buckets++
		if len(ss.cold) >= scanReads {
			return cursor, st // The rest is read when this is there: reads of others stand behind these.
		}
		if cursor == 0 || on && index.Passed(cursor) > r.Last || seen >= count || buckets >= 16+count {
			return cursor, st
		}
	}
}

// scanReads is about how many cold records a scan has read at a time.
const scanReads = 64

// Wanted is how many cold records the operations of this round, Cold so far, have to read.
func (ss *Session) Wanted() int { return len(ss.cold) }

// Looked counts the records that scans of the session have looked at, whichever database they are of.
func (ss *Session) Looked() int { return ss.looked }

// arrivesAhead tells whether something of r is still to arrive in the bucket that a walk of
// it is at.
func (ss *Session) arrivesAhead(r Range, cursor uint64) bool {
	first, last := ss.ix.Ahead(r.First, cursor)
	return ss.arrives(Range{max(first, r.First), min(last, r.Last)})
}

func within(p, from, to record.Place) bool { return from <= p && p <= to }

// visit reads the entry that a walk stands at, if it is of table t.
func (ss *Session) visit(t *table, pr *index.Probe) (View, []byte, Status) {
	a := pr.Address()
	if a == 0 {
		return View{}, nil, NotFound
	}
	p, ok := ss.entry(a)
	if !ok {
		if !ss.st.log.MayHold(a, t.id) {
			return View{}, nil, NotFound // It is somebody else's, and on a disk: nobody waits for that.
		}
		ss.want(a)
		return View{}, nil, Cold
	}
	if p.Table() != t.id || p.Type() != record.TypePut || ss.expired(p) {
		return View{}, nil, NotFound
	}
	if !ss.st.log.Stable(a) {
		ss.note(a)
	}
	key := p.Key()
	v := View{Version: p.Version() &^ record.VersionLock, ExpireAt: p.ExpireAt(), Kind: p.Kind(), at: a, live: true}
	return v, key, OK
}

const (
	randomTries = 64 // random entries that are looked at before a search
	randomReads = 16 // and cold ones that are read
)

// RandomKeyFrom appends a random key of the database to dst, in steps: a database may be small among large ones, and to find
// one of its keys takes long.
// next is not 0 if nothing was found yet, for the next call, also if that is to wait for what is Cold; the first one's is 0.
func (ss *Session) RandomKeyFrom(db int, cursor uint64, dst []byte) (key []byte, next uint64, st Status) {
	t := ss.st.tables.of(db)
	if keys, _ := t.sum(); keys == 0 {
		if ss.st.arriving.any() && ss.arrives(wholeRange) {
			return dst, 0, Cold
		}
		return dst, 0, NotFound
	}
	if cursor == 0 {
		if key, st := ss.randomKey(t, dst); st != NotFound {
			return key, 0, st
		}
	}
	return ss.firstKey(db, cursor, dst)
}

// randomKey looks at random entries, and at those that were read for it: others would be chosen now, so it is Cold once.
func (ss *Session) randomKey(t *table, dst []byte) ([]byte, Status) {
	cold := 0
	for range randomTries {
		var pr index.Probe
		if !ss.st.ix.Random(rand.Uint64(), &pr) || cold == randomReads {
			break
		}
		switch _, key, st := ss.visit(t, &pr); st {
		case OK:
			return append(dst, key...), OK
		case Cold:
			cold++
		}
	}
	if cold > 0 && len(ss.stash) == 0 {
		return dst, Cold
	}
	ss.cold = ss.cold[:len(ss.cold)-cold]
	for _, got := range ss.stash {
		if p := record.PtrOf(got.bytes); p.Table() == t.id && p.Type() == record.TypePut {
			k := Key{record.PlaceOf(t.id, p.Key()), t.id, p.Key(), t}
			if _, st := ss.Get(&k); st == OK {
				return append(dst, k.Bytes...), OK
			}
		}
	}
	return dst, NotFound
}

// firstKeySteps is how often a step of firstKey scans, some buckets each.
const firstKeySteps = 64

// firstKey finds some key, for a database that is small among large ones, or where to go on.
func (ss *Session) firstKey(db int, cursor uint64, dst []byte) (key []byte, next uint64, st Status) {
	found := false
	for range firstKeySteps {
		next, st := ss.Scan(db, cursor, 1, func(key []byte, _ *View) {
			if !found {
				dst, found = append(dst, key...), true
			}
		})
		switch {
		case found:
			return dst, 0, OK
		case st != OK:
			return dst, cursor, st
		case next == 0:
			return dst, 0, NotFound
		}
		cursor = next
	}
	return dst, cursor, NotFound
}

// Usage tells how many bytes a record takes, its share of the index included.
func (ss *Session) Usage(k *Key) (int, Status) {
	var pr index.Probe
	p, st := ss.find(k, &pr)
	for st == NotFound && ss.st.arriving.any() {
		if st = ss.lacks(k); st != Conflict {
			break
		}
		p, st = ss.find(k, &pr)
	}
	if st != OK {
		return 0, st
	}
	if ss.expired(p) {
		return 0, NotFound
	}
	n := p.Length() + indexShareBytes
	if m, ok := decodeManifest(p.Value()); ok && p.Chunked() {
		n += int(m.total) + m.chunks()*(record.HeaderBytes+chunkKeyBytes+6+len(k.Bytes)+indexShareBytes)
	}
	return n, OK
}

// indexShareBytes is an entry's share of a bucket, with usual room to grow.
const indexShareBytes = 16
