package store

import "github.com/ostrodb/ostro/engine/record"

// glance reads k where nearly every key is: the first candidate of its bucket,
// at a, in memory, a record without expiry and in one piece. False asks for the
// general way.
func (ss *Session) glance(k *Key, a record.Address, v *View) bool {
	at := ss.log.See(a)
	p := at.Entry()
	if p.IsNil() || !p.PlainKeyIs(k.Table, k.Bytes) {
		return false
	}
	ver, value := p.Version(), p.PlainValue()
	switch {
	case at.Constant():
		if !at.Stable() {
			ss.note(a)
		}
	case at.Mutable() && ver&record.VersionLock == 0:
		value = ss.arena.keep(value)
		if !p.Unchanged(ver) {
			return false
		}
	default:
		return false
	}
	v.Value, v.Version, v.ExpireAt, v.Kind, v.live = value, ver&^record.VersionLock, 0, p.Kind(), true
	v.at, v.floor = a, 0
	ss.stat.reads++
	ss.stat.hits++
	return true
}
