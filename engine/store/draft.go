package store

import "github.com/ostrodb/ostro/engine/index"

// Draft gives the entries of keys while others may write them: of those that are in memory, and no large values. An entry is valid only
// until emit returns, and may be torn by who writes it meanwhile; version is what it had before. So a copy of it counts only if
// Outdated does not tell of its key once nobody writes any more.
//
// It waits for nobody, and nothing that it gives need be safe yet: who knows that nobody writes any more knows that, too.
func (ss *Session) Draft(keys []ArrivingKey, emit func(i int, version uint64, entry []byte)) {
	ss.eachNear(keys, func(i int, k *Key) {
		var pr index.Probe
		ss.ix.Seek(k.Place, &pr)
		p, st := ss.match(k, &pr, reading)
		if st != OK || p.Chunked() || ss.expired(p) {
			return
		}
		emit(i, p.Version(), p.Bytes()) // That of what is locked is none that Outdated ever finds.
	})
}

// Outdated tells which keys have no record of the version that Draft gave, or none in memory.
func (ss *Session) Outdated(keys []ArrivingKey, versions []uint64, tell func(i int)) {
	ss.eachNear(keys, func(i int, k *Key) {
		var pr index.Probe
		if p, st := ss.find(k, &pr); st != OK || versionOf(p) != versions[i] {
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
