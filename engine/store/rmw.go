package store

import (
	"encoding/binary"
	"fmt"

	"github.com/ostrodb/ostro/engine/record"
)

// RMW reads a record, lets f make its successor, and writes that if nobody was
// faster; else again. f may run several times; it returns false to leave the
// record as it is. The old view is valid during f only.
func (ss *Session) RMW(k *Key, f func(old *View, exists bool) (Write, bool)) Status {
	v := &ss.old
	for round := 0; ; round++ {
		var st Status
		if st = ss.Read(k, v); st == Cold || st >= Refused {
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
	if ss.inPlace() {
		if sum, ok := ss.addAt(ss.ix.First(k.Place), k, delta); ok {
			return sum, OK
		}
	}
	return ss.addAnew(k, delta)
}

// AddBatch adds delta to many counters, as Add does to one, and leaves their
// sums in sums. The cache misses of the counters overlap.
func (ss *Session) AddBatch(keys []Key, delta int64, sums []int64, st []Status) {
	var at [batchKeys]record.Address
	for inPlace := ss.inPlace(); len(keys) > 0; {
		n := min(len(keys), batchKeys)
		ss.approach(keys[:n], &at)
		for i := range n {
			if inPlace {
				if sum, ok := ss.addAt(at[i], &keys[i], delta); ok {
					sums[i], st[i] = sum, OK
					continue
				}
			}
			sums[i], st[i] = ss.addAnew(&keys[i], delta)
		}
		keys, sums, st = keys[n:], sums[n:], st[n:]
	}
}

// inPlace tells whether records may be updated where they lie.
func (ss *Session) inPlace() bool { return !ss.tx.open && !ss.st.logged }

// addAt adds to k's counter where it lies, if that is at a, in the mutable part
// of the log, plain, and nobody else is at it. Else the general way has to do.
func (ss *Session) addAt(a record.Address, k *Key, delta int64) (int64, bool) {
	if a == 0 {
		return 0, false
	}
	at := ss.log.See(a)
	p := at.Entry()
	if p.IsNil() || !p.PlainKeyIs(k.Table, k.Bytes) || !at.Mutable() {
		return 0, false
	}
	ver, value := p.Version(), p.PlainValue()
	if len(value) != 8 || ver&record.VersionLock != 0 || !p.LockVersion(ver) {
		return 0, false
	}
	sum := int64(binary.LittleEndian.Uint64(value)) + delta
	binary.LittleEndian.PutUint64(value, uint64(sum))
	p.UnlockVersion(ver + 1)
	ss.stat.writes++
	return sum, true
}

// addAnew adds by writing the counter's successor.
func (ss *Session) addAnew(k *Key, delta int64) (int64, Status) {
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
