package store

import (
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/prefetch"
)

// batchKeys is how many keys are looked up at once: enough misses in flight to
// keep the memory busy, few enough to stay in the nearest cache.
const batchKeys = 32

// GetBatch reads many records. It goes through them in stages, so that the
// cache misses of one key overlap with those of the others.
func (ss *Session) GetBatch(keys []Key, views []View, st []Status) {
	if ss.tx.open {
		for i := range keys {
			st[i] = ss.Read(&keys[i], &views[i])
		}
		return
	}
	for len(keys) > 0 {
		n := min(len(keys), batchKeys)
		ss.getSome(keys[:n], views, st)
		keys, views, st = keys[n:], views[n:], st[n:]
	}
}

// Prefetch brings near what operations on keys will need. It has no other effect.
func (ss *Session) Prefetch(keys []Key) {
	var at [batchKeys]record.Address
	for len(keys) > 0 {
		n := min(len(keys), batchKeys)
		ss.approach(keys[:n], &at)
		keys = keys[n:]
	}
}

// Expect brings near the records of keys that ReadExpected will read in this round, and notes where they are.
func (ss *Session) Expect(keys []Key, s []Sight) {
	for len(keys) > 0 {
		n := min(len(keys), batchKeys)
		ss.expect(keys[:n], s)
		keys, s = keys[n:], s[n:]
	}
}

func (ss *Session) expect(keys []Key, s []Sight) {
	var spots [batchKeys]index.Spot
	for i := range keys {
		spots[i%batchKeys] = ss.ix.Approach(keys[i].Place)
	}
	for i := range keys {
		if a := index.FirstWordAt(spots[i%batchKeys], keys[i].Place, &s[i].word); a != 0 {
			ss.fetchEntry(a)
		}
	}
}

// getSome reads up to batchKeys records.
func (ss *Session) getSome(keys []Key, views []View, st []Status) {
	var at [batchKeys]record.Address
	ss.approach(keys, &at)
	ss.getAt(keys, &at, views, st)
}

// getAt reads records that approach has found at at.
func (ss *Session) getAt(keys []Key, at *[batchKeys]record.Address, views []View, st []Status) {
	for i := range keys {
		before := ss.leanings
		if at[i] != 0 && ss.glance(&keys[i], at[i], &views[i]) {
			ss.usual = len(views[i].Value) + len(keys[i].Bytes) + record.HeaderBytes
			st[i], views[i].leans = OK, ss.leanings != before
			continue
		}
		views[i], st[i] = ss.get(&keys[i])
		views[i].leans = ss.leanings != before
		for j := i + 1; j < len(keys); j++ {
			if at[j] != 0 && keys[j].Place == keys[i].Place {
				at[j] = 0 // It is of before this read, and who reads a key twice must not go back in time.
			}
		}
	}
}

// approach asks for the buckets of all keys, then for their records: those of
// the first candidates, which are the right ones nearly always. It leaves their
// addresses in at, and 0 for those that need a closer look.
func (ss *Session) approach(keys []Key, at *[batchKeys]record.Address) {
	var spots [batchKeys]index.Spot
	for i := range keys {
		spots[i%batchKeys] = ss.ix.Approach(keys[i].Place)
	}
	for i := range keys {
		a := index.FirstAt(spots[i%batchKeys], keys[i].Place)
		at[i%batchKeys] = a
		if a != 0 {
			ss.fetchEntry(a)
		}
	}
}

// fetchEntry asks for a record, if it is in memory.
func (ss *Session) fetchEntry(a record.Address) {
	if p := ss.log.See(a).Entry(); !p.IsNil() {
		ss.fetchLines(p)
	}
}

const cacheLine = 64

// fetchLines asks for the cache lines of a record that is as long as the last
// one was. Asking for more would keep other records waiting: only so many lines
// can be on their way at once.
func (ss *Session) fetchLines(p record.Ptr) {
	at := p.Pointer()
	reach := uintptr(at)%cacheLine + uintptr(ss.usual)
	prefetch.Lines(at, max(1, (int(min(reach, 4*cacheLine))+cacheLine-1)/cacheLine))
}
