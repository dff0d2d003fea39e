package store

import "github.com/ostrodb/ostro/engine/record"

// glance looks for k where nearly every key is: the first candidate of its
// bucket, in memory, a record without expiry and in one piece. An address of 0
// asks for the general way.
func (ss *Session) glance(k *Key) (record.Address, record.Ptr) {
	a := ss.st.ix.First(k.Place)
	if a == 0 {
		return 0, record.Ptr{}
	}
	p, ok := ss.st.log.Entry(a)
	if !ok || !p.Plain() || !p.KeyIs(k.Table, k.Bytes) {
		return 0, record.Ptr{}
	}
	return a, p
}

// glanced makes the view of what a glance found; false asks for the general way.
func (ss *Session) glanced(a record.Address, p record.Ptr, v *View) bool {
	ver, value := p.Version(), p.Value()
	switch {
	case ss.st.log.Aging(a):
		return false
	case ss.st.logged || ss.st.log.Frozen(a):
		if !ss.st.log.Stable(a) {
			ss.note(a)
		}
	case ver&record.VersionLock != 0:
		return false
	default:
		value = ss.arena.keep(value)
		if !p.Unchanged(ver) {
			return false
		}
	}
	v.Value, v.Version, v.Kind, v.at, v.live = value, ver&^record.VersionLock, p.Kind(), a, true
	return true
}
