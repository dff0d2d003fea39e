package session

import (
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire"
)

// do executes an operation; false if it has to wait for I/O.
func (w *worker) do(op *wire.Op, k *store.Key) bool {
	switch op.Code {
	case wire.OpRead:
		return w.read(op, k)
	case wire.OpPut, wire.OpAdd, wire.OpAppend, wire.OpSwap, wire.OpMerge, wire.OpDelete:
		return w.change(op, k)
	case wire.OpMultiGet:
		return w.multiGet(op)
	case wire.OpMultiPut:
		return w.multiPut(op)
	case wire.OpScan:
		return w.scan(op)
	case wire.OpInvoke:
		return w.invoke(op, k)
	case wire.OpModule:
		return w.module(op)
	case wire.OpPing:
		w.answer(op, wire.Result{Value: op.Arg})
	}
	return true
}

func (w *worker) read(op *wire.Op, k *store.Key) bool {
	st := w.sess.Read(k, &w.views[0])
	if st == store.Cold {
		return false
	}
	w.answerRead(op.Tag, &w.views[0], st)
	return true
}

// answerRead gives a read its result.
func (w *worker) answerRead(tag uint32, v *store.View, st store.Status) {
	r := wire.Result{Tag: tag}
	switch {
	case st == store.NotFound:
		r.Status = wire.NotFound
	case st != store.OK:
		r.Status, r.Value = w.failure(st)
	case v.Kind != record.KindString:
		r.Status, r.Value = wire.Invalid, noString(v.Kind)
	default:
		r.Version, r.ExpireAt, r.Value = v.Version, v.ExpireAt, v.Value
	}
	w.on.out.add(&r)
}

// failure translates a status that nothing can be done about.
func (w *worker) failure(st store.Status) (wire.Status, []byte) {
	status := wire.Failed
	switch st {
	case store.Refused:
		status = wire.Refused
	case store.TooLarge:
		status = wire.TooLarge
	}
	return status, []byte(w.sess.Err().Error())
}

func noString(k record.Kind) []byte {
	return []byte("the key holds a " + k.String() + ": read it over RESP")
}
