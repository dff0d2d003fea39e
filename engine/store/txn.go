package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// txn is a transaction: its keys' entries are locked in the index, in the
// order of their places, its writes are buffered, and Commit makes them one
// batch of the log. Others that meet a locked entry wait; so nothing that waits
// may be done while a transaction is open.
type txn struct {
	open bool
	keys []lockedKey
}

// lockedKey is a key of the transaction and what is to become of it.
type lockedKey struct {
	key  Key
	pr   index.Probe
	old  record.Ptr // nil if absent; version-locked if it is not frozen
	ver  uint64
	held bool // old's version lock is ours
	op   txnOp
	e    entry
	view View   // what a read sees after op
	was  uint64 // the last tombstone of its stripe
	next uint64 // the version that it gets

	stamp *lockedKey // whose version the value ends in; see Effect
}

type txnOp uint8

const (
	opNone txnOp = iota
	opPut
	opDelete
)

// errColliding is for absent keys that share all bits that the index knows, when
// the index grew between them: the placeholder of the one cannot be told from
// another transaction's any more. Next time it can.
var errColliding = errors.New("the transaction waits for a key that nobody gives free: try again")

// lockRounds bounds the wait for other transactions, which last microseconds.
const lockRounds = 1 << 20

// Lock opens a transaction on keys. With Cold nothing is locked.
func (ss *Session) Lock(keys []Key) Status {
	for round := 0; ; round++ {
		if st := ss.lock(keys); st != Conflict {
			return st
		}
		if round == readRounds {
			return ss.fail(errUnreadable)
		}
		yield(round)
	}
}

// lock is one try of Lock. Conflict asks for another: a large value lacks pieces. It may be arriving, or its
// record was no longer in memory when it was locked; so all is given free, and looked at from the beginning.
func (ss *Session) lock(keys []Key) Status {
	ss.tx.keys = ss.tx.keys[:0]
	for _, k := range keys {
		ss.tx.keys = append(ss.tx.keys, lockedKey{key: k})
	}
	slices.SortFunc(ss.tx.keys, func(a, b lockedKey) int { return a.key.compare(&b.key) })
	ss.tx.keys = slices.CompactFunc(ss.tx.keys, func(a, b lockedKey) bool { return a.key.compare(&b.key) == 0 })
	if st := ss.warm(); st != OK {
		return st
	}
	ss.tx.open = true // From here on reads pass over locks: they may be our own.
	for i := range ss.tx.keys {
		if st := ss.lockKey(i); st != OK {
			ss.unlock(i)
			ss.tx.open = false
			return st
		}
	}
	return OK
}

// compare orders keys by place, which is the order that transactions lock in.
func (k *Key) compare(o *Key) int {
	if c := cmp.Compare(k.Place, o.Place); c != 0 {
		return c
	}
	if c := cmp.Compare(k.Table, o.Table); c != 0 {
		return c
	}
	return bytes.Compare(k.Bytes, o.Bytes)
}

// warm looks for records that must be fetched before anything is locked, large
// values in all their pieces.
func (ss *Session) warm() Status {
	all := OK
	for i := range ss.tx.keys {
		if _, st := ss.Get(&ss.tx.keys[i].key); st == Cold {
			all = Cold
		}
	}
	return all
}

// lockKey locks key number i; all before it are locked.
func (ss *Session) lockKey(i int) Status {
	lk := &ss.tx.keys[i]
	for round := 0; round < lockRounds; round++ {
		ss.st.ix.Seek(lk.key.Place, &lk.pr)
		old, st := ss.match(&lk.key, &lk.pr, i)
		switch {
		case st == Cold:
			return Cold
		case st == OK && ss.st.ix.Lock(&lk.pr):
			lk.old = old
			st := ss.lockRecord(lk)
			if st != OK {
				ss.unlockKey(lk)
			}
			return st
		case st == NotFound && ss.st.arriving.any() && ss.missing(&lk.key) == Cold:
			return Cold
		case st == NotFound && ss.met >= crowdMost:
			return ss.fail(errCrowded)
		case st == NotFound:
			switch ss.st.ix.InsertLocked(&lk.pr, 0) {
			case index.Inserted:
				lk.view = ss.absent(&lk.key)
				return OK
			case index.Full:
				return ss.fail(ErrIndexFull)
			}
		}
		yield(round)
	}
	return ss.fail(errColliding)
}

// knownShift leaves of a place what all candidates of a search have in common.
const knownShift = 32

// holds tells whether one of the first keys has the entry locked, or the
// placeholder, that pr stands at. Only keys that agree in what the index compares
// can, and they stand right before the one that is sought.
func (ss *Session) holds(pr *index.Probe, held int) bool {
	a, top := pr.Address(), pr.Place()>>knownShift
	for i := held - 1; i >= 0 && ss.tx.keys[i].key.Place>>knownShift == top; i-- {
		own := &ss.tx.keys[i].pr
		if own.Address() == a && (a != 0 || own.Same(pr)) {
			return true
		}
	}
	return false
}

// lockRecord keeps those off who found the record before its entry was locked
// and may update it in place, and notes what the record is.
func (ss *Session) lockRecord(lk *lockedKey) Status {
	a := lk.pr.Address()
	for round := 0; !ss.st.opts.logged() && !ss.st.log.Frozen(a); round++ {
		ver := lk.old.Version()
		if ver&record.VersionLock == 0 && lk.old.LockVersion(ver) {
			lk.held, lk.ver = true, ver
			return ss.lockedView(lk, a)
		}
		yield(round)
	}
	lk.ver = versionOf(lk.old)
	return ss.lockedView(lk, a)
}

// lockedView makes the view that reads inside the transaction see.
func (ss *Session) lockedView(lk *lockedKey, a record.Address) Status {
	p := lk.old
	if !ss.st.log.Stable(a) {
		ss.note(a)
	}
	lk.view = View{Version: lk.ver, at: a}
	if ss.expired(p) {
		return OK
	}
	lk.view.ExpireAt, lk.view.Kind, lk.view.live = p.ExpireAt(), p.Kind(), true
	if !p.Chunked() {
		lk.view.Value = p.Value()
		return OK
	}
	v, st := ss.assembleFrom(lk.view, p.Value())
	lk.view = v
	if st == OK || st == Cold {
		return st
	}
	return Conflict
}

// find gives the transaction's key that is k, or nil.
func (tx *txn) find(k *Key) *lockedKey {
	low, high := 0, len(tx.keys)
	for low < high {
		mid := (low + high) / 2
		switch c := tx.keys[mid].key.compare(k); {
		case c == 0:
			return &tx.keys[mid]
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return nil
}

func (ss *Session) txnGet(lk *lockedKey) (View, Status) {
	if !lk.view.live {
		return lk.view, NotFound
	}
	ss.stat.hits++
	return lk.view, OK
}

var errNotLocked = errors.New("the key is not part of the transaction")

// txnPut buffers a write. Its bytes are copied: the caller's may change.
func (ss *Session) txnPut(k *Key, w Write) Status {
	lk := ss.tx.find(k)
	if lk == nil {
		return ss.fail(errNotLocked)
	}
	value := ss.arena.alloc(len(w.Value))
	copy(value, w.Value)
	lk.op = opPut
	lk.e = entry{Header: record.Header{Type: record.TypePut, Kind: w.Kind, Table: k.Table, ExpireAt: w.ExpireAt}, value: value}
	lk.view.Value, lk.view.ExpireAt, lk.view.Kind, lk.view.live = value, w.ExpireAt, w.Kind, true
	if w.ExpireAt != 0 && w.ExpireAt <= ss.now {
		lk.view.live = false
	}
	lk.view.Version++
	return OK
}

func (ss *Session) txnDelete(k *Key) Status {
	lk := ss.tx.find(k)
	if lk == nil {
		return ss.fail(errNotLocked)
	}
	if !lk.view.live {
		return NotFound
	}
	lk.op = opDelete
	lk.view = View{Version: lk.view.Version + 1, at: lk.view.at, floor: lk.view.floor}
	ss.stat.deletes++
	return OK
}

// Commit makes the transaction's writes part of the log as one batch, shows
// them, and unlocks. Whatever it returns, the transaction is over.
func (ss *Session) Commit() Status {
	if !ss.tx.open {
		return OK
	}
	st := ss.commit()
	ss.chunking.Store(0)
	if st != OK {
		ss.dropLarge()
		ss.Abort()
		return st
	}
	ss.tx.open = false
	return OK
}

func (ss *Session) commit() Status {
	if st := ss.splitLarge(); st != OK {
		return st
	}
	total := ss.prepare()
	ss.tx.stamp()
	if total > ss.st.log.MaxEntry() {
		return ss.fail(fmt.Errorf("%w: the writes of a transaction take %d bytes, at most %d are possible", ErrTooLarge, total, ss.st.log.MaxEntry()))
	}
	for round := 0; ; round++ {
		ss.openGraves()
		if st := ss.appendAll(total); st != Conflict {
			return st
		}
		yield(round)
	}
}

// appendAll writes the batch, of so many bytes, and shows it. Conflict: a
// session of another head has buried a neighbour of a key meanwhile.
func (ss *Session) appendAll(total int) Status {
	h := ss.head
	h.Lock()
	defer h.Unlock()
	var at record.Address
	var room []byte
	var err error
	if total > 0 {
		if at, room, err = reserve(h, total, ss.onlyBuries(total)); err != nil {
			return ss.fail(err)
		}
	}
	if !ss.markGraves(at) {
		return Conflict
	}
	ss.encodeAll(room)
	ss.showAll(at)
	if total > 0 {
		h.Keep(total)
		h.NoteTombstone(ss.buried())
	}
	return OK
}

// splitLarge writes the pieces of large values, so that what remains of them is
// small. They are synced before the batch is written: after a loss of power a
// record without its pieces does not count, and the batch would be torn.
func (ss *Session) splitLarge() Status {
	split := false
	for i := range ss.tx.keys {
		lk := &ss.tx.keys[i]
		if lk.op == opPut && !lk.e.Chunked && len(lk.e.value) > ss.st.chunkBytes() {
			if st := ss.writeChunks(&lk.key, &lk.e); st != OK {
				return st
			}
			split = true
		}
	}
	if split {
		if err := ss.st.log.Sync(); err != nil {
			return ss.fail(err)
		}
	}
	return OK
}

// dropLarge takes the pieces back of a transaction that failed.
func (ss *Session) dropLarge() {
	for i := range ss.tx.keys {
		if lk := &ss.tx.keys[i]; lk.op == opPut && lk.e.Chunked {
			ss.dropChunks(lk.key.Place, lk.e.value)
		}
	}
}

// prepare gives every write its entry and version, and adds up their bytes.
func (ss *Session) prepare() (total int) {
	for i := range ss.tx.keys {
		lk := &ss.tx.keys[i]
		last := lk.ver
		if lk.old.IsNil() {
			last = ss.st.floors.of(lk.key.Place).Load()
		}
		next := ss.st.following(&lk.key, last)
		lk.next = next
		switch {
		case lk.op == opDelete && lk.old.IsNil():
			lk.op = opNone // It came and went within the transaction.
		case lk.op == opDelete && ss.st.replayed():
			lk.e = tombstone(ss.st, lk.key.Table, next, new(horizon))
			total += lk.e.size(&lk.key)
		case lk.op == opPut:
			lk.e.Version = next
			total += lk.e.size(&lk.key)
		}
	}
	return total
}

// buried adds up the bytes of the transaction's tombstones.
func (ss *Session) buried() (n int) {
	for i := range ss.tx.keys {
		if lk := &ss.tx.keys[i]; lk.op == opDelete && lk.logs(ss.st) {
			n += lk.e.size(&lk.key)
		}
	}
	return n
}

// onlyBuries tells whether all of the transaction's bytes, total, are tombstones
// and results of deletions.
func (ss *Session) onlyBuries(total int) bool {
	n := ss.buried()
	for i := range ss.tx.keys {
		if lk := &ss.tx.keys[i]; n > 0 && lk.op == opPut && lk.e.Type == record.TypeCompletion {
			n += lk.e.size(&lk.key)
		}
	}
	return total == n
}

// logs tells whether the key's write has an entry in the log.
func (lk *lockedKey) logs(st *Store) bool {
	return lk.op == opPut || lk.op == opDelete && st.replayed()
}

// openGraves prepares for the transaction's tombstones.
func (ss *Session) openGraves() {
	for i := range ss.tx.keys {
		if lk := &ss.tx.keys[i]; lk.op == opDelete && ss.st.logged {
			lk.was = ss.openGrave(lk.key.Place)
		}
	}
}

// markGraves marks the transaction's tombstones, its first entry at a.
func (ss *Session) markGraves(a record.Address) bool {
	for i := range ss.tx.keys {
		lk := &ss.tx.keys[i]
		if lk.op == opDelete && ss.st.logged && !ss.markGrave(lk.key.Place, lk.was, a) {
			return false
		}
		if lk.logs(ss.st) {
			a += record.Address(lk.e.size(&lk.key))
		}
	}
	return true
}

func (ss *Session) encodeAll(room []byte) {
	for i := range ss.tx.keys {
		lk := &ss.tx.keys[i]
		if lk.logs(ss.st) {
			n := record.Encode(room, &lk.e.Header, lk.key.Bytes, lk.e.value, ss.st.opts.logged())
			room = room[n:]
		}
	}
}

// showAll points the index at the new entries, the first of them at a, and
// unlocks all keys.
func (ss *Session) showAll(a record.Address) {
	for i := range ss.tx.keys {
		lk := &ss.tx.keys[i]
		switch lk.op {
		case opPut:
			ss.showPut(lk, a)
		case opDelete:
			ss.showDelete(lk)
		default:
			ss.unlockKey(lk)
		}
		if lk.logs(ss.st) {
			a += record.Address(lk.e.size(&lk.key))
		}
	}
}

func (ss *Session) showPut(lk *lockedKey, a record.Address) {
	was := lk.pr.Address()
	ss.st.ix.UpdateLocked(&lk.pr, a, false)
	if lk.old.IsNil() {
		lk.key.in.count(ss.n, lk.e.worth(&lk.key))
		return
	}
	ss.died(was, lk.old)
	lk.key.in.count(ss.n, lk.e.worth(&lk.key).minus(worthOf(lk.old)))
}

func (ss *Session) showDelete(lk *lockedKey) {
	ss.st.noteRemoval(&lk.key, lk.ver, lk.next)
	ss.st.floors.raise(lk.key.Place, lk.next)
	was := lk.pr.Address()
	ss.st.ix.RemoveLocked(&lk.pr)
	ss.died(was, lk.old)
	lk.key.in.count(ss.n, worth{}.minus(worthOf(lk.old)))
}

// Abort forgets the transaction's writes and unlocks its keys.
func (ss *Session) Abort() {
	if !ss.tx.open {
		return
	}
	ss.unlock(len(ss.tx.keys))
	ss.tx.open = false
}

// unlock unlocks the first n keys, unchanged.
func (ss *Session) unlock(n int) {
	for i := range n {
		ss.unlockKey(&ss.tx.keys[i])
	}
}

func (ss *Session) unlockKey(lk *lockedKey) {
	if lk.held {
		lk.old.UnlockVersion(lk.ver)
	}
	if lk.old.IsNil() {
		ss.st.ix.RemoveLocked(&lk.pr)
	} else {
		ss.st.ix.Unlock(&lk.pr)
	}
}
