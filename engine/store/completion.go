package store

import (
	"errors"

	"github.com/ostrodb/ostro/engine/record"
)

var errNotBuilt = errors.New("not built yet")

// OpID names an operation of a client: it is the same in every attempt.
type OpID struct{ Client, Seq uint64 }

// MaxResultBytes is the longest result that is kept with an operation.
const MaxResultBytes = 4096

// Effect is what an operation does to its key, and what it answers.
type Effect struct {
	Write  *Write // The key's next record; nil for none.
	Delete bool   // The key goes. It need not be there.
	Result []byte // What every attempt is answered; at most MaxResultBytes.
	// Stamp asks for the version of what was written, 8 bytes little-endian, at
	// the end of the result; 0 if nothing was.
	Stamp bool
}

// Once runs an operation on k unless it was run before. Its effect and its result
// are one batch of the log: a crash keeps both or none. f may run several times;
// its view is valid during f only. again tells that this was not the first
// attempt: then result is the first one's. The result is valid until End.
//
// It is recorded whatever the effect is, for an attempt that is late must not
// find a condition true that was answered to be false. Cold asks to run it again, as
// with every operation.
func (ss *Session) Once(k *Key, id OpID, f func(old *View, exists bool) Effect) (result []byte, again bool, st Status) {
	return nil, false, ss.fail(errNotBuilt)
}

// Completed gives the result of an operation on a key at place that was run;
// NotFound if it was not, or if that is too long ago.
func (ss *Session) Completed(place record.Place, id OpID) ([]byte, Status) {
	return nil, ss.fail(errNotBuilt)
}

// OpKey names the record of an operation, for transactions of several keys: Lock
// it with them, see by Get whether it was run before, and Complete it.
func (ss *Session) OpKey(place record.Place, id OpID) Key { return Key{} }

// Complete records the result of the operation op in the open transaction.
func (ss *Session) Complete(op *Key, result []byte) Status { return ss.fail(errNotBuilt) }

// Forget drops the record of an operation whose answer has arrived: there will
// be no other attempt. Without it the record goes by time.
func (ss *Session) Forget(place record.Place, id OpID) Status { return ss.fail(errNotBuilt) }
