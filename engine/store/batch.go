package store

import (
	"unsafe"

	"github.com/ostrodb/ostro/engine/index"
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

// getSome reads up to batchKeys records: all buckets are asked for, then all
// records, then keys are compared.
func (ss *Session) getSome(keys []Key, views []View, st []Status) {
	var probes [batchKeys]index.Probe
	ix, log := ss.st.ix, ss.st.log
	for i := range keys {
		ix.SeekPrefetch(keys[i].Place, &probes[i])
	}
	for i := range keys {
		pr := &probes[i]
		ix.Start(pr)
		st[i] = NotFound
		if !pr.Next() {
			continue
		}
		if p, ok := log.Entry(pr.Address()); ok && !pr.Locked() {
			prefetch.T0(p.Pointer())
			prefetch.T0(unsafe.Add(p.Pointer(), 64))
			st[i] = OK
			continue
		}
		st[i] = Conflict
	}
	for i := range keys {
		views[i], st[i] = ss.finish(&keys[i], &probes[i], st[i])
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
					ss.stat.hits++
				}
				return v, st
			}
		}
	}
	return ss.Get(k)
}
