package store

import (
	"fmt"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// MaxValueBytes is the largest value.
const MaxValueBytes = 512 << 20

// Put writes a record. With expect it does so only if the key still is as in
// that view, and says Conflict otherwise.
func (ss *Session) Put(k *Key, w Write, expect *View) Status {
	if err := checkSizes(k, &w); err != nil {
		return ss.fail(err)
	}
	ss.stat.writes++
	if ss.tx.open {
		return ss.txnPut(k, w)
	}
	e := entry{Header: record.Header{Type: record.TypePut, Kind: w.Kind, Table: k.Table, ExpireAt: w.ExpireAt}, value: w.Value}
	if len(w.Value) > ss.st.chunkBytes() {
		return ss.putLarge(k, e, expect)
	}
	return ss.put(k, &e, expect)
}

func checkSizes(k *Key, w *Write) error {
	if len(k.Bytes) > record.MaxKeyBytes {
		return fmt.Errorf("%w: a key has at most %d bytes", ErrTooLarge, record.MaxKeyBytes)
	}
	if len(w.Value) > MaxValueBytes {
		return fmt.Errorf("%w: a value has at most %d bytes", ErrTooLarge, MaxValueBytes)
	}
	return nil
}

// entry is a log entry to be.
type entry struct {
	record.Header
	value []byte
}

func (e *entry) size(k *Key) int {
	return record.Size(len(k.Bytes), len(e.value), e.ExpireAt != 0)
}

// put installs e as k's record.
func (ss *Session) put(k *Key, e *entry, expect *View) Status {
	var pr index.Probe
	for round := 0; ; round++ {
		old, st := ss.find(k, &pr)
		if st == Cold {
			return Cold
		}
		if expect != nil && !ss.asExpected(k, &pr, old, expect) {
			return Conflict
		}
		if done := ss.install(k, e, &pr, old); done != Conflict {
			return done
		}
		yield(round)
	}
}

// asExpected tells whether what find found is what the view showed.
func (ss *Session) asExpected(k *Key, pr *index.Probe, old record.Ptr, v *View) bool {
	if old.IsNil() {
		return v.at == 0 && v.floor == ss.st.floors.of(k.Place).Load()
	}
	return v.at == pr.Address() && v.Version == old.Version()
}

// install makes e the successor of what find found. Conflict: somebody else
// was faster, or is in the middle of it; look again.
func (ss *Session) install(k *Key, e *entry, pr *index.Probe, old record.Ptr) Status {
	if old.IsNil() {
		return ss.insert(k, e, pr)
	}
	at := pr.Address()
	if ss.st.opts.logged() || ss.st.log.Frozen(at) {
		return ss.replace(k, e, pr, old, old.Version())
	}
	ver := old.Version()
	if ver&record.VersionLock != 0 || !old.LockVersion(ver) {
		return Conflict
	}
	if ss.fitsInPlace(k, e, at, old) {
		ss.rewrite(k, e, old, ver)
		return OK
	}
	st := ss.replace(k, e, pr, old, ver)
	if st != OK {
		old.UnlockVersion(ver)
	}
	return st // A replaced record stays locked: whoever still sees it looks again.
}

// fitsInPlace tells whether e can take the place of old. The caller holds
// old's version lock.
func (ss *Session) fitsInPlace(k *Key, e *entry, at record.Address, old record.Ptr) bool {
	return ss.st.log.Mutable(at) && e.size(k) == old.Length() && (e.ExpireAt != 0) == old.HasExpiry() &&
		e.Kind == old.Kind() && !e.Chunked && !old.Chunked()
}

// rewrite updates old in place and gives its version lock back.
func (ss *Session) rewrite(k *Key, e *entry, old record.Ptr, ver uint64) {
	old.Rewrite(e.value, e.ExpireAt)
	old.UnlockVersion(ver + 1)
}

// insert appends e and makes it the entry of a key that has none.
func (ss *Session) insert(k *Key, e *entry, pr *index.Probe) Status {
	e.Version = ss.st.floors.of(k.Place).Load() + 1
	st := ss.publish(k, e, func(a record.Address) bool {
		return ss.st.ix.Insert(pr, a) == index.Inserted
	})
	if st == OK {
		k.in.count(ss.n, 1, b2i(e.ExpireAt != 0))
	}
	return st
}

// replace appends e and makes it the entry in place of old.
func (ss *Session) replace(k *Key, e *entry, pr *index.Probe, old record.Ptr, ver uint64) Status {
	e.Version = ver + 1
	at := pr.Address()
	st := ss.publish(k, e, func(a record.Address) bool { return ss.st.ix.Update(pr, a) })
	if st != OK {
		return st
	}
	ss.died(at, old)
	k.in.count(ss.n, 0, b2i(e.ExpireAt != 0)-b2i(old.HasExpiry()))
	return OK
}

// publish appends e and lets swing point the index at it. The append is taken
// back if the swing fails: nobody saw it.
func (ss *Session) publish(k *Key, e *entry, swing func(record.Address) bool) Status {
	n := e.size(k)
	h := ss.head
	h.Lock()
	defer h.Unlock()
	a, room, err := h.Reserve(n)
	if err != nil {
		return ss.fail(err)
	}
	record.Encode(room, &e.Header, k.Bytes, e.value, ss.st.opts.logged())
	if !swing(a) {
		h.Undo(n)
		return Conflict
	}
	h.Keep(n)
	if e.Type == record.TypeTombstone {
		h.NoteTombstone(n)
	}
	return OK
}

// died accounts for an entry that was replaced or removed.
func (ss *Session) died(at record.Address, p record.Ptr) {
	ss.head.Died(at, uint32(p.Length()))
	if p.Chunked() {
		ss.dropChunks(record.PlaceOf(p.Table(), p.Key()), p.Value())
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
