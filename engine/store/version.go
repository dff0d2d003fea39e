package store

import "github.com/ostrodb/ostro/engine/record"

// Version is Read of the version alone, for who wants to know whether something is as it was.
func (ss *Session) Version(k *Key) (uint64, Status) {
	if !ss.tx.open {
		if a := ss.ix.First(k.Place); a != 0 {
			if ver, ok := ss.glanceVersion(k, a); ok {
				return ver, OK
			}
		}
	}
	v, st := ss.get(k)
	return v.Version, st
}

// glanceVersion is glance for Version.
func (ss *Session) glanceVersion(k *Key, a record.Address) (uint64, bool) {
	at := ss.log.See(a)
	p := at.Entry()
	if p.IsNil() || !p.PlainKeyIs(k.Table, k.Bytes) {
		return 0, false
	}
	ver := p.Version()
	switch {
	case at.Constant():
		if !at.Stable() {
			ss.note(a)
		}
	case !at.Mutable() || ver&record.VersionLock != 0:
		return 0, false
	}
	ss.stat.reads++
	ss.stat.hits++
	return ver &^ record.VersionLock, true
}
