package store

import (
	"encoding/binary"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Delete removes a record. With expect it does so only if the key still is as
// in that view.
func (ss *Session) Delete(k *Key, expect *View) Status {
	if ss.tx.open {
		return ss.txnDelete(k)
	}
	var pr index.Probe
	for round := 0; ; round++ {
		old, st := ss.find(k, &pr)
		if st == NotFound && ss.st.arriving.any() {
			if st = ss.lacks(k); st == Conflict {
				yield(round)
				continue
			}
		}
		if st != OK {
			ss.noteAbsence(k.Place)
			return st
		}
		ver := versionOf(old)
		if expect != nil && !ss.asExpected(k, old, ver, expect) {
			return Conflict
		}
		if a := pr.Address(); !ss.st.log.Stable(a) {
			ss.note(a) // The reply tells that it was there.
		}
		gone := ss.expired(old)
		switch st := ss.remove(k, &pr, old, ver); {
		case st == Conflict:
			yield(round)
		case st == OK && gone:
			return NotFound
		case st == OK:
			ss.stat.deletes++
			return OK
		default:
			return st
		}
	}
}

// remove takes a record of version ver out of the index, and notes so in the
// log if the log will ever be replayed. Conflict asks for another look.
func (ss *Session) remove(k *Key, pr *index.Probe, old record.Ptr, ver uint64) Status {
	if k.Table == completionTable {
		if !ss.dropCompletion(pr, old) {
			return Conflict
		}
		return OK
	}
	as := ss.st.following(k, ver)
	ss.st.noteRemoval(k, ver, as)
	return ss.removeAs(k, pr, old, ver, as)
}

// removeAs is remove by a deletion of version as.
func (ss *Session) removeAs(k *Key, pr *index.Probe, old record.Ptr, ver, as uint64) Status {
	at := pr.Address()
	lock := !ss.st.opts.logged() && !ss.st.log.Frozen(at)
	if lock && !old.LockVersion(ver) || !lock && versionOf(old) != ver {
		return Conflict
	}
	ss.st.floors.raise(k.Place, as)
	st := ss.bury(k, as, func(record.Address) bool { return ss.st.ix.Remove(pr) })
	if st != OK {
		if lock {
			old.UnlockVersion(ver)
		}
		return st
	}
	ss.died(at, old)
	k.in.count(ss.n, worth{}.minus(worthOf(old)))
	return OK
}

// bury appends a tombstone while swing takes the record out of the index.
func (ss *Session) bury(k *Key, ver uint64, swing func(record.Address) bool) Status {
	if !ss.st.replayed() {
		if swing(0) {
			return OK
		}
		return Conflict
	}
	var h horizon
	e := tombstone(ss.st, k.Table, ver, &h)
	if !ss.st.logged {
		return ss.publish(k, &e, swing)
	}
	was := ss.openGrave(k.Place)
	return ss.publish(k, &e, func(a record.Address) bool { return ss.markGrave(k.Place, was, a) && swing(a) })
}

// horizon is the value of a tombstone: a segment's id.
type horizon [8]byte

// tombstone makes a tombstone. It says which segments can hold older records
// of its key: all those below its horizon. When they are gone, so may it.
func tombstone(st *Store, t record.TableID, ver uint64, h *horizon) entry {
	binary.LittleEndian.PutUint64(h[:], uint64(st.log.NextID()))
	return entry{Header: record.Header{Type: record.TypeTombstone, Table: t, Version: ver}, value: h[:]}
}
