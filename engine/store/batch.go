package store

import (
	"unsafe"

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
			views[i], st[i] = ss.Get(&keys[i])
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
	var probes [batchKeys]index.Probe
	for len(keys) > 0 {
		n := min(len(keys), batchKeys)
		ss.approach(keys[:n], &probes, nil)
		keys = keys[n:]
	}
}

// getSome reads up to batchKeys records.
func (ss *Session) getSome(keys []Key, views []View, st []Status) {
	var probes [batchKeys]index.Probe
	ss.approach(keys, &probes, st)
	for i := range keys {
		views[i], st[i] = ss.finish(&keys[i], &probes[i], st[i])
	}
}

// approach asks for the buckets of all keys, then for their records: those of
// the first candidates, which are the right ones nearly always. It notes OK
// for keys with a record on its way, NotFound for those without a candidate, and
// Conflict for those that need a closer look.
func (ss *Session) approach(keys []Key, probes *[batchKeys]index.Probe, st []Status) {
	ix, log := ss.st.ix, ss.st.log
	for i := range keys {
		ix.SeekPrefetch(keys[i].Place, &probes[i])
	}
	for i := range keys {
		pr, found := &probes[i], NotFound
		ix.Start(pr)
		if pr.Next() {
			found = Conflict
			if p, ok := log.Entry(pr.Address()); ok && !pr.Locked() {
				found = OK
				ss.fetchLines(p)
			}
		}
		if st != nil {
			st[i] = found
		}
	}
}

const cacheLine = 64

// fetchLines asks for the cache lines of a record that is as long as the last
// one was. Asking for more would keep other records waiting: only so many lines
// can be on their way at once.
func (ss *Session) fetchLines(p record.Ptr) {
	at := p.Pointer()
	prefetch.T0(at)
	reach := uintptr(at)%cacheLine + uintptr(ss.usual)
	for off := uintptr(cacheLine); off < min(reach, 4*cacheLine); off += cacheLine {
		prefetch.T0(unsafe.Add(at, off))
	}
}

// finish ends the lookup of one key: the common case is that the first
// candidate is it; any other goes the general way.
func (ss *Session) finish(k *Key, pr *index.Probe, st Status) (View, Status) {
	if st == NotFound {
		ss.stat.reads++
		return ss.absent(k), NotFound
	}
	if st == OK {
		a := pr.Address()
		if p, ok := ss.st.log.Entry(a); ok && p.KeyIs(k.Table, k.Bytes) {
			if v, st := ss.view(a, p); st != Conflict {
				ss.stat.reads++
				if st == OK {
					ss.usual = p.Length()
					ss.stat.hits++
					ss.touched(pr, p)
				}
				return v, st
			}
		}
	}
	return ss.get(k)
}
