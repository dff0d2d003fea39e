package store

import (
	"unsafe"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Copy reads the record of a key that is used once. Its value goes to dst, as
// far as that reaches; n is how long it is.
func (ss *Session) Copy(db int, key, dst []byte) (n int, st Status) {
	if canLeap && len(key) == 8 && !ss.tx.open {
		p, word, state := leap(ss, ss.tables.of(db), *wordOf(key))
		if hlog.State(state).Mutable() && len(dst) >= 8 && p.IsWord() {
			ver := p.Version()
			*wordOf(dst) = *p.Word()
			if ver&record.VersionLock == 0 && p.Unchanged(ver) {
				ss.stat.reads++
				ss.stat.hits++
				return 8, OK
			}
		}
		if n, ok := ss.copyPlain(p, index.AddressIn(word), state, dst); ok {
			return n, OK
		}
	}
	return ss.copyAny(db, key, dst)
}

// wordOf is the first eight bytes of b, which has as many.
func wordOf(b []byte) *uint64 { return (*uint64)(unsafe.Pointer(unsafe.SliceData(b))) }

// copyPlain copies the value of what leap found, if it found something that can
// be read now.
func (ss *Session) copyPlain(p record.Ptr, a record.Address, state uint32, dst []byte) (n int, ok bool) {
	switch at := hlog.State(state); {
	case at.Mutable():
		ver := p.Version()
		if ver&record.VersionLock != 0 {
			return 0, false
		}
		value := p.PlainValue()
		n = len(value)
		copy(dst, value)
		if !p.Unchanged(ver) {
			return 0, false
		}
	case at.Constant():
		if !ss.log.Stable(a) {
			ss.note(a)
		}
		value := p.PlainValue()
		n = len(value)
		copy(dst, value)
	default:
		return 0, false
	}
	ss.stat.reads++
	ss.stat.hits++
	return n, true
}

// copyAny is Copy of whatever key.
func (ss *Session) copyAny(db int, key, dst []byte) (int, Status) {
	k := ss.Key(db, key)
	v, st := ss.Get(&k)
	copy(dst, v.Value)
	return len(v.Value), st
}

// Count is Add for a key that is used once.
func (ss *Session) Count(db int, key []byte, delta int64) (int64, Status) {
	if canLeap && len(key) == 8 && ss.inPlace() {
		p, _, state := leap(ss, ss.tables.of(db), *wordOf(key))
		if hlog.State(state).Mutable() && p.IsWord() {
			ver := p.Version()
			if ver&record.VersionLock == 0 && p.LockVersion(ver) {
				sum := *p.Word() + uint64(delta)
				*p.Word() = sum
				p.UnlockVersion(ver + 1)
				ss.stat.writes++
				return int64(sum), OK
			}
		}
	}
	k := ss.Key(db, key)
	return ss.Add(&k, delta)
}
