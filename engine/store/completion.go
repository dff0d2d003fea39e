package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// A write that carries an OpID is run once, however often it is tried: its result
// is a record of the log, of the same batch as its effect.
//
//	completion   place u64, client u64, sequence u64 -> result        (expires)
//
// The place is the one of the object that it is about, so the completion belongs to
// the same range and moves with it. In the index it lies in the object's slot. It
// is of a table of its own, which no database has: neither scans nor truncations
// see it. Its time is its only end, in whatever log it is: there are no
// tombstones of completions, and one that comes back after it was dropped is
// dropped again.
//
// Who writes one holds its entry of the index locked as transactions do, from
// before it looks for an earlier attempt until both are written. So of two attempts
// that race one waits and finds the other's result.

// OpID names an operation of a client: it is the same in every attempt.
type OpID struct{ Client, Seq uint64 }

const (
	// MaxResultBytes is the longest result that is kept with an operation.
	MaxResultBytes = 4096

	completionTable    record.TableID = 1<<32 - 2
	completionKeyBytes                = 24
	stampBytes                        = 8
)

// Effect is what an operation does to its key, and what it answers.
type Effect struct {
	Write  *Write // The key's next record; nil for none.
	Delete bool   // The key goes. It need not be there.
	Result []byte // What every attempt is answered; at most MaxResultBytes.
	// Stamp asks for the version of what was written, 8 bytes little-endian, at
	// the end of the result; 0 if nothing was.
	Stamp bool
}

var errResultTooLarge = fmt.Errorf("%w: the result of an operation has at most %d bytes", ErrTooLarge, MaxResultBytes)

// OpKey names the record of an operation on a key at place, for transactions of
// several keys: Lock it with them, see by Get whether it was run before, and
// Complete it. Its bytes are valid until End.
func (ss *Session) OpKey(place record.Place, id OpID) Key {
	return ss.opKey(place, id, (*[completionKeyBytes]byte)(ss.arena.alloc(completionKeyBytes)))
}

func (ss *Session) opKey(place record.Place, id OpID, b *[completionKeyBytes]byte) Key {
	if !ss.st.opts.Cluster {
		place &^= slotRest // There are no ranges, and truncating gives a key another place in its slot.
	}
	binary.LittleEndian.PutUint64(b[:], uint64(place))
	binary.LittleEndian.PutUint64(b[8:], id.Client)
	binary.LittleEndian.PutUint64(b[16:], id.Seq)
	return Key{Place: completionPlace(b[:]), Table: completionTable, Bytes: b[:], in: ss.tables.completions}
}

// completionPlace is where the index has a completion.
func completionPlace(key []byte) record.Place {
	return inSlotOf(objectOf(key), record.PlaceOf(completionTable, key))
}

// objectOf is the place of the object that a completion is about.
func objectOf(key []byte) record.Place { return record.Place(binary.LittleEndian.Uint64(key)) }

// Completed gives the result of an operation on a key at place that was run;
// NotFound if it was not, or if that is too long ago. It is valid until End.
func (ss *Session) Completed(place record.Place, id OpID) ([]byte, Status) {
	var buf [completionKeyBytes]byte
	k := ss.opKey(place, id, &buf)
	v, st := ss.Get(&k)
	return v.Value, st
}

var errInTransaction = errors.New("a transaction is open: lock the operation's OpKey with its keys, and Complete it")

var errNoOperation = errors.New("only the record of an operation can be completed: name it by OpKey")

// Complete records the result of the operation op in the open transaction. It
// fails if its client knows the answer; then the transaction is to be aborted.
func (ss *Session) Complete(op *Key, result []byte) Status {
	switch {
	case op.Table != completionTable || !ss.tx.open:
		return ss.fail(errNoOperation)
	case len(result) > MaxResultBytes:
		return ss.fail(errResultTooLarge)
	}
	id, until := idOf(op.Bytes), ss.now+ss.st.opts.KeepResults.Milliseconds()
	if ss.st.clients.isAnswered(id) {
		return ss.fail(errAnswered)
	}
	st := ss.txnPut(op, Write{Value: result, ExpireAt: until})
	if st == OK {
		e := &ss.tx.find(op).e
		e.Type = record.TypeCompletion
		ss.st.clients.note(id, receipt{id.Seq, objectOf(op.Bytes), until, uint32(e.size(op))}, ss.now, ss.payer)
	}
	return st
}

// idOf reads whose result the key of a completion names.
func idOf(key []byte) OpID {
	return OpID{binary.LittleEndian.Uint64(key[8:]), binary.LittleEndian.Uint64(key[16:])}
}

// Once runs an operation on k unless it was run before. Its effect and its result
// are one batch of the log: a crash keeps both or none. f may run several times;
// its view is valid during f only. again tells that this was not the first
// attempt: then result is the first one's. The result is valid until End.
//
// It is recorded whatever the effect is, for an attempt that is late must not
// find a condition true that was answered to be false. Cold asks to run it again, as
// with every operation. It is a transaction of its own, so none may be open.
func (ss *Session) Once(k *Key, id OpID, f func(old *View, exists bool) Effect) (result []byte, again bool, st Status) {
	if ss.tx.open {
		return nil, false, ss.fail(errInTransaction)
	}
	op := ss.OpKey(k.Place, id)
	for round := 0; ; round++ {
		result, again, st = ss.once(k, &op, f)
		if st != Conflict {
			return result, again, st
		}
		yield(round)
	}
}

// once is one try of Once.
func (ss *Session) once(k, op *Key, f func(old *View, exists bool) Effect) (result []byte, again bool, st Status) {
	keys := [2]Key{*k, *op}
	ss.Prefetch(keys[:])
	if st := ss.Lock(keys[:]); st != OK {
		return nil, false, st
	}
	done := ss.tx.find(op)
	if done.view.live {
		result = ss.arena.keep(done.view.Value)
		ss.Abort()
		return result, true, OK
	}
	object := ss.tx.find(k)
	e := f(&object.view, object.view.live)
	if e.Write != nil && len(e.Write.Value) > ss.st.chunkBytes() {
		was := object.view
		ss.Abort()
		return ss.onceLarge(k, op, &e, &was)
	}
	if st := ss.effect(k, op, &e); st != OK {
		ss.Abort()
		return nil, false, st
	}
	if st := ss.Commit(); st != OK {
		return nil, false, st
	}
	return done.e.value, false, OK
}

// effect buffers what an operation does.
func (ss *Session) effect(k, op *Key, e *Effect) Status {
	switch {
	case e.Write != nil:
		if err := ss.checkSizes(k, e.Write); err != nil {
			return ss.fail(err)
		}
		ss.stat.writes++
		if st := ss.txnPut(k, *e.Write); st != OK {
			return st
		}
	case e.Delete:
		if st := ss.txnDelete(k); st >= Refused {
			return st
		}
	}
	if !e.Stamp {
		return ss.Complete(op, e.Result)
	}
	stamped := ss.arena.alloc(len(e.Result) + stampBytes)
	clear(stamped[copy(stamped, e.Result):])
	if st := ss.Complete(op, stamped); st != OK {
		return st
	}
	ss.tx.find(op).stamp = ss.tx.find(k)
	return OK
}

// stamp writes the version of what was written into results that asked for it. Versions
// are known by now, and the results not yet encoded.
func (tx *txn) stamp() {
	for i := range tx.keys {
		lk := &tx.keys[i]
		if of := lk.stamp; of != nil && of.op != opNone {
			binary.LittleEndian.PutUint64(lk.e.value[len(lk.e.value)-stampBytes:], of.next)
		}
	}
}

// Forget drops the record of an operation whose answer has arrived: there will
// be no other attempt. Without it the record goes by time.
func (ss *Session) Forget(place record.Place, id OpID) Status {
	var buf [completionKeyBytes]byte
	k := ss.opKey(place, id, &buf)
	var pr index.Probe
	for round := 0; ; round++ {
		p, st := ss.find(&k, &pr)
		if st != OK {
			return st
		}
		if ss.dropCompletion(&pr, p) {
			return OK
		}
		yield(round)
	}
}

// dropCompletion takes a completion out of the index; false asks for another look.
func (ss *Session) dropCompletion(pr *index.Probe, p record.Ptr) bool {
	at := pr.Address()
	if !ss.st.ix.Remove(pr) {
		return false
	}
	ss.head.Died(at, uint32(p.Length()))
	ss.tables.completions.count(ss.n, worth{}.minus(worthOf(p)))
	return true
}
