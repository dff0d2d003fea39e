package store

import (
	"encoding/binary"
	"fmt"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// RMW reads a record, lets f make its successor, and writes that if nobody was
// faster; else again. f may run several times; it returns false to leave the
// record as it is. The old view is valid during f only.
func (ss *Session) RMW(k *Key, f func(old *View, exists bool) (Write, bool)) Status {
	v := &ss.old
	for round := 0; ; round++ {
		var st Status
		if *v, st = ss.Get(k); st == Cold || st >= Refused {
			return st
		}
		w, write := f(v, v.live)
		if !write {
			return st
		}
		if st := ss.Put(k, w, v); st != Conflict {
			return st
		}
		yield(round)
	}
}

// Add adds to a counter, an 8-byte little-endian integer, and returns the sum.
// An absent counter is zero. Where the log allows it, this is done in place.
func (ss *Session) Add(k *Key, delta int64) (int64, Status) {
	if !ss.tx.open && !ss.st.opts.logged() {
		if sum, st := ss.addInPlace(k, delta); st != Conflict {
			return sum, st
		}
	}
	var sum int64
	bad := false
	st := ss.RMW(k, func(old *View, exists bool) (Write, bool) {
		sum = delta
		if exists {
			if bad = len(old.Value) != 8; bad {
				return Write{}, false
			}
			sum += int64(binary.LittleEndian.Uint64(old.Value))
		}
		b := ss.arena.alloc(8)
		binary.LittleEndian.PutUint64(b, uint64(sum))
		return Write{Value: b, ExpireAt: old.ExpireAt, Kind: old.Kind}, true
	})
	if bad {
		return 0, ss.fail(fmt.Errorf("the value is no counter: it has not 8 bytes"))
	}
	return sum, st
}

// addInPlace adds where the record lies. Conflict asks for the general way.
func (ss *Session) addInPlace(k *Key, delta int64) (int64, Status) {
	var pr index.Probe
	p, st := ss.find(k, &pr)
	if st != OK || !ss.st.log.Mutable(pr.Address()) || ss.expired(p) {
		return 0, Conflict
	}
	ver := p.Version()
	if ver&record.VersionLock != 0 || !p.LockVersion(ver) {
		return 0, Conflict
	}
	value := p.Value()
	if len(value) != 8 {
		p.UnlockVersion(ver)
		return 0, Conflict
	}
	sum := int64(binary.LittleEndian.Uint64(value)) + delta
	binary.LittleEndian.PutUint64(value, uint64(sum))
	p.UnlockVersion(ver + 1)
	ss.stat.writes++
	return sum, OK
}
