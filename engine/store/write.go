package store

import (
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/invariant"
)

// MaxValueBytes is the largest value.
const MaxValueBytes = 512 << 20

// Put writes a record. With expect it does so only if the key still is as in
// that view, and says Conflict otherwise.
func (ss *Session) Put(k *Key, w Write, expect *View) Status {
	if err := ss.checkSizes(k, &w); err != nil {
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

func (ss *Session) checkSizes(k *Key, w *Write) error {
	if len(k.Bytes) > record.MaxKeyBytes {
		return fmt.Errorf("%w: a key has at most %d bytes", ErrTooLarge, record.MaxKeyBytes)
	}
	if n := record.Size(len(k.Bytes), len(horizon{}), true); n > ss.st.log.MaxEntry() { // It must be possible to delete it.
		return fmt.Errorf("%w: a key of %d bytes does not fit a segment of %d", ErrTooLarge, len(k.Bytes), ss.st.log.SegmentBytes())
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
		if st == NotFound && expect != nil && ss.st.arriving.any() {
			st = ss.missing(k) // Who expects nothing need not wait for it.
		}
		if st == Cold {
			return Cold
		}
		ver := versionOf(old)
		if expect != nil && !ss.asExpected(k, old, ver, expect) {
			return Conflict
		}
		if done := ss.install(k, e, &pr, old, ver); done != Conflict {
			return done
		}
		yield(round)
	}
}

// versionOf is a record's version without the lock bit, which a frozen record
// may still carry; 0 if there is no record.
func versionOf(p record.Ptr) uint64 {
	if p.IsNil() {
		return 0
	}
	return p.Version() &^ record.VersionLock
}

// asExpected tells whether what find found, of version ver, is what the view
// showed. Versions only grow, so they say it all, wherever the record is by now.
func (ss *Session) asExpected(k *Key, old record.Ptr, ver uint64, v *View) bool {
	if old.IsNil() {
		return v.at == 0 && v.floor == ss.st.floors.of(k.Place).Load()
	}
	return v.at != 0 && v.Version == ver
}

// install makes e the successor of what find found, if that still has the
// version ver. Conflict: somebody else was faster, or is in the middle of it;
// look again.
func (ss *Session) install(k *Key, e *entry, pr *index.Probe, old record.Ptr, ver uint64) Status {
	if old.IsNil() {
		return ss.insert(k, e, pr)
	}
	at := pr.Address()
	if ss.st.opts.logged() || ss.st.log.Frozen(at) {
		if versionOf(old) != ver {
			return Conflict // It was updated in place before it froze, after we looked at its version.
		}
		return ss.replace(k, e, pr, old, ver)
	}
	if !old.LockVersion(ver) {
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

// crowdMost is how many keys may have all bits of their hashes in common that the index knows. Keys that nobody has chosen
// for it are a handful at most, among thousands of millions; whoever chooses them would have each look at all others.
const crowdMost = 128

var errCrowded = fmt.Errorf("%w: %d keys have the same hash as this one, which nobody needs: choose other keys", ErrTooLarge, crowdMost)

// insert appends e and makes it the entry of a key that has none.
func (ss *Session) insert(k *Key, e *entry, pr *index.Probe) Status {
	if ss.met >= crowdMost {
		return ss.fail(errCrowded)
	}
	e.Version = ss.st.following(k, ss.st.floors.of(k.Place).Load())
	full := false
	st := ss.publish(k, e, func(a record.Address) bool {
		result := ss.st.ix.Insert(pr, a)
		full = result == index.Full
		return result == index.Inserted
	})
	if full {
		return ss.fail(ErrIndexFull)
	}
	if st == OK {
		k.in.count(ss.n, e.worth(k))
	}
	return st
}

// replace appends e and makes it the entry in place of old.
func (ss *Session) replace(k *Key, e *entry, pr *index.Probe, old record.Ptr, ver uint64) Status {
	e.Version = ss.st.following(k, ver)
	if invariant.Enabled {
		invariant.Check(e.Version > ver, "version %d of a record follows %d", e.Version, ver)
	}
	at := pr.Address()
	st := ss.publish(k, e, func(a record.Address) bool { return ss.st.ix.Update(pr, a) })
	if st != OK {
		return st
	}
	ss.died(at, old)
	k.in.count(ss.n, e.worth(k).minus(worthOf(old)))
	return OK
}

// publish appends e and lets swing point the index at it. The append is taken
// back if the swing fails: nobody saw it.
func (ss *Session) publish(k *Key, e *entry, swing func(record.Address) bool) Status {
	n := e.size(k)
	if most := ss.st.log.MaxEntry(); n > most {
		return ss.fail(fmt.Errorf("%w: key and value take %d bytes in a segment, at most %d are possible", ErrTooLarge, n, most))
	}
	h := ss.head
	h.Lock()
	defer h.Unlock()
	a, room, err := reserve(h, n, e.Type == record.TypeTombstone)
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

// reserve gives room in the log. A deletion gets some even if the memory limit
// is reached: how else would there ever be room again?
func reserve(h *hlog.Head, n int, deletion bool) (record.Address, []byte, error) {
	a, room, err := h.Reserve(n)
	if deletion && errors.Is(err, ErrMemoryFull) {
		return h.ReserveBeyond(n)
	}
	return a, room, err
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
