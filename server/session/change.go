package session

import (
	"bytes"
	"encoding/binary"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire"
)

// rmw makes a record's successor. It is part of a worker, so that an operation
// allocates nothing; step and effect are its methods, made into functions once.
type rmw struct {
	op    *wire.Op
	swap  wire.Swap
	merge Merge
	arg   []byte // a merge's operand

	most    int // bytes that a value may have
	status  wire.Status
	version uint64 // of the old record, if it stays
	value   []byte // of the result
	write   store.Write
	acts    bool // the record is written, or goes
	number  [8]byte
	scratch []byte
	result  []byte

	step   func(old *store.View, exists bool) (store.Write, bool)
	effect func(old *store.View, exists bool) store.Effect
}

// change executes an operation that reads and writes one record.
func (w *worker) change(op *wire.Op, k *store.Key) bool {
	m := &w.rmw
	if !m.prepare(w, op) {
		return true
	}
	switch {
	case op.Flags&wire.FlagOnce != 0:
		return w.changeOnce(op, k)
	case op.Code == wire.OpDelete:
		return w.remove(op, k)
	case op.Code == wire.OpPut && op.Flags&wire.FlagIfVersion == 0 && len(op.Arg) <= m.most:
		return w.done(op, w.sess.Put(k, store.Write{Value: op.Arg, ExpireAt: op.ExpireAt}, nil))
	}
	st := w.sess.RMW(k, m.step)
	if st == store.NotFound {
		st = store.OK // It was left as it was: absent.
	}
	return w.done(op, st)
}

// done answers with what rmw has found, or with what the store says.
func (w *worker) done(op *wire.Op, st store.Status) bool {
	m := &w.rmw
	switch st {
	case store.Cold:
		return false
	case store.OK:
		w.answer(op, wire.Result{Status: m.status, Version: m.version, Value: m.value})
	default:
		status, why := w.failure(st)
		w.answer(op, wire.Result{Status: status, Value: why})
	}
	return true
}

// remove deletes a record, as it is or only in one version.
func (w *worker) remove(op *wire.Op, k *store.Key) bool {
	m, v := &w.rmw, &w.views[0]
	for {
		var expect *store.View
		if op.Flags&wire.FlagIfVersion != 0 {
			st := w.sess.Read(k, v)
			if st != store.OK && st != store.NotFound {
				return w.done(op, st)
			}
			if m.decide(v, v.Exists()); !m.acts {
				return w.done(op, store.OK)
			}
			expect = v
		}
		switch st := w.sess.Delete(k, expect); st {
		case store.Conflict: // Somebody was faster: look again.
		case store.NotFound:
			m.status = wire.NotFound
			return w.done(op, store.OK)
		default:
			return w.done(op, st)
		}
	}
}

// changeOnce executes an operation that has an identity, or gives the answer of its
// first attempt.
func (w *worker) changeOnce(op *wire.Op, k *store.Key) bool {
	m := &w.rmw
	result, again, st := w.sess.Once(k, w.id(op), m.effect)
	if st != store.OK {
		return w.done(op, st)
	}
	if again {
		w.tally.repeated++
	}
	w.answer(op, decodeOutcome(result))
	return true
}

// id names the operation for all of its attempts.
func (w *worker) id(op *wire.Op) store.OpID {
	return store.OpID{Client: w.on.batch.Client, Seq: op.Sequence}
}

// An outcome is what is remembered of an operation:
//
//	u8 status, u64 version that stayed, value, u64 version that was written
const (
	outcomeHead = 9
	outcomeBody = outcomeHead + 8
	// outcomeValueBytes bounds the value, so that remembering stays cheap.
	outcomeValueBytes = 1024
)

func appendOutcome(b []byte, r *wire.Result) []byte {
	b = append(b, byte(r.Status))
	b = binary.LittleEndian.AppendUint64(b, r.Version)
	return append(b, r.Value...)
}

// decodeOutcome reads what appendOutcome wrote, with the store's stamp behind it.
func decodeOutcome(b []byte) wire.Result {
	if len(b) < outcomeBody {
		return wire.Result{Status: wire.Failed, Value: []byte("what is remembered of the operation makes no sense: run 'ostro check' on the data directory")}
	}
	r := wire.Result{Status: wire.Status(b[0]), Version: binary.LittleEndian.Uint64(b[1:]), Value: b[outcomeHead : len(b)-8]}
	if stamp := binary.LittleEndian.Uint64(b[len(b)-8:]); stamp != 0 {
		r.Version = stamp
	}
	return r
}

// prepare reads the operation's argument; false if it was answered for making no sense.
func (m *rmw) prepare(w *worker, op *wire.Op) bool {
	m.op, m.status, m.version, m.value, m.most = op, wire.OK, 0, nil, w.maxValue()
	var err error
	switch op.Code {
	case wire.OpAdd:
		if len(op.Arg) != 8 {
			w.refuse(op, wire.Invalid, "add takes a number of 8 bytes")
			return false
		}
	case wire.OpSwap:
		m.swap, err = wire.DecodeSwap(op.Arg)
	case wire.OpMerge:
		var name []byte
		name, m.arg, err = wire.DecodeMerge(op.Arg)
		if m.merge = w.srv.merges[string(name)]; m.merge == nil && err == nil {
			w.refuse(op, wire.Unknown, "there is no merge function "+string(name)+": the server has max, min, or, union and what its program registered")
			return false
		}
	}
	if err != nil {
		w.refuse(op, wire.Invalid, "the argument of "+op.Code.String()+" makes no sense: "+err.Error())
		return false
	}
	return true
}

// next is what the store's RMW calls, perhaps several times.
func (m *rmw) next(old *store.View, exists bool) (store.Write, bool) {
	m.decide(old, exists)
	return m.write, m.acts
}

// outcome is what the store's Once calls, perhaps several times.
func (m *rmw) outcome(old *store.View, exists bool) store.Effect {
	m.decide(old, exists)
	if len(m.value) > outcomeValueBytes {
		m.value = nil
	}
	m.result = appendOutcome(m.result[:0], &wire.Result{Status: m.status, Version: m.version, Value: m.value})
	e := store.Effect{Result: m.result, Stamp: true}
	switch {
	case m.acts && m.op.Code == wire.OpDelete:
		e.Delete = true
	case m.acts:
		e.Write = &m.write
	}
	return e
}

// decide computes the successor of a record and the operation's answer.
func (m *rmw) decide(old *store.View, exists bool) {
	op := m.op
	m.status, m.version, m.value, m.acts = wire.OK, 0, nil, true
	m.write = store.Write{ExpireAt: old.ExpireAt}
	if op.Flags&wire.FlagExpire != 0 || op.Code == wire.OpPut {
		m.write.ExpireAt = op.ExpireAt
	}
	var version uint64
	if exists {
		version = old.Version
	}
	switch {
	case op.Flags&wire.FlagIfVersion != 0 && op.Version != version:
		m.leave(wire.Conflict, version, nil)
	case op.Code == wire.OpPut && len(op.Arg) > m.most:
		m.leave(wire.TooLarge, version, tooLong)
	case op.Code == wire.OpPut:
		m.write.Value = op.Arg
	case op.Code == wire.OpDelete && !exists:
		m.leave(wire.NotFound, 0, nil)
	case op.Code == wire.OpDelete:
	case exists && old.Kind != record.KindString:
		m.leave(wire.Invalid, version, noString(old.Kind))
	default:
		m.compute(old, exists, version)
	}
}

var tooLong = []byte("a tenant's values have at most 16 MiB: divide it")

// leave lets the record stay as it is.
func (m *rmw) leave(st wire.Status, version uint64, value []byte) {
	m.status, m.version, m.value, m.acts = st, version, value, false
}

func (m *rmw) compute(old *store.View, exists bool, version uint64) {
	switch m.op.Code {
	case wire.OpAdd:
		m.add(old, exists, version)
	case wire.OpAppend:
		if len(old.Value)+len(m.op.Arg) > m.most {
			m.leave(wire.TooLarge, version, tooLong)
			return
		}
		m.scratch = append(append(m.scratch[:0], old.Value...), m.op.Arg...)
		m.write.Value = m.scratch
		binary.LittleEndian.PutUint64(m.number[:], uint64(len(m.scratch)))
		m.value = m.number[:]
	case wire.OpSwap:
		if m.swap.Absent == exists || exists && !bytes.Equal(old.Value, m.swap.Old) {
			m.leave(wire.Conflict, version, m.shown(old.Value))
			return
		}
		m.write.Value = m.swap.New
	case wire.OpMerge:
		merged, err := m.merge(m.scratch[:0], old.Value, exists, m.arg)
		if err != nil {
			m.leave(wire.Invalid, version, []byte(err.Error()))
			return
		}
		m.scratch, m.write.Value, m.value = merged, merged, m.shown(merged)
	}
}

func (m *rmw) add(old *store.View, exists bool, version uint64) {
	sum := binary.LittleEndian.Uint64(m.op.Arg)
	if exists {
		if len(old.Value) != 8 {
			m.leave(wire.Invalid, version, []byte("the value is no counter: it has not 8 bytes"))
			return
		}
		sum += binary.LittleEndian.Uint64(old.Value)
	}
	m.scratch = binary.LittleEndian.AppendUint64(m.scratch[:0], sum)
	m.write.Value, m.value = m.scratch, m.scratch
}

// shown is a value as far as a result carries it: whole, or not at all.
func (m *rmw) shown(value []byte) []byte {
	if len(value) > outcomeValueBytes {
		return nil
	}
	return value
}
