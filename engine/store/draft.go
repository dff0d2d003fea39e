package store

import (
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Draft gives the entries of keys while others may write them: of those that are in memory, and no large values. An entry is valid only
// until emit returns, and may be torn by who writes it meanwhile, or have a locked version; version is what it had before. So a copy of it
// has to get that version, and counts only if Outdated does not tell of its key once nobody writes any more. Of a key that somebody
// has locked there is no entry, and Outdated tells of it.
//
// It waits for nobody, and nothing that it gives need be safe yet: who knows that nobody writes any more knows that, too.
func (ss *Session) Draft(keys []ArrivingKey, emit func(i int, version uint64, entry []byte)) {
	ss.eachNear(keys, func(i int, k *Key) {
		var pr index.Probe
		ss.ix.Seek(k.Place, &pr)
		switch p, st := ss.match(k, &pr, reading); {
		case st == Conflict:
			emit(i, record.VersionLock, nil)
		case st == OK && !p.Chunked() && !ss.expired(p):
			emit(i, p.Version(), p.Bytes())
		}
	})
}

// Outdated tells which keys have no record of the version that Draft gave, or none in memory. A locked version is none.
func (ss *Session) Outdated(keys []ArrivingKey, versions []uint64, tell func(i int)) {
	ss.eachNear(keys, func(i int, k *Key) {
		var pr index.Probe
		if p, st := ss.find(k, &pr); st != OK || p.Version() != versions[i] || versions[i]&record.VersionLock != 0 {
			tell(i)
		}
	})
}

// eachNear calls f for one key after the other, when what it needs was asked for.
func (ss *Session) eachNear(keys []ArrivingKey, f func(i int, k *Key)) {
	var near [batchKeys]Key
	for from := 0; from < len(keys); from += batchKeys {
		some := keys[from:min(from+batchKeys, len(keys))]
		for i := range some {
			near[i] = Key{Place: some[i].Place, Table: some[i].Table, Bytes: some[i].Bytes}
		}
		ss.Prefetch(near[:len(some)])
		for i := range some {
			f(from+i, &near[i])
		}
	}
}
