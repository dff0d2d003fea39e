package session

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire"
)

// many is room for operations on several keys.
type many struct {
	keys  []store.Key
	puts  []wire.Put
	views []store.View
	stats []store.Status
	out   []byte
}

func (m *many) reset() { m.keys, m.puts = m.keys[:0], m.puts[:0] }

func (m *many) add(ss *store.Session, table uint32, key []byte) {
	m.keys = append(m.keys, store.Key{})
	ss.Name(&m.keys[len(m.keys)-1], int(table), key)
}

// grow makes room to read all keys.
func (m *many) grow() {
	for len(m.views) < len(m.keys) {
		m.views, m.stats = append(m.views, store.View{}), append(m.stats, store.OK)
	}
}

// serves tells whether all keys are here; if not, the operation was dealt with.
func (w *worker) serves(op *wire.Op) bool {
	if w.all {
		w.noteMany()
		return true
	}
	var missing view.Ranges
	for i := range w.many.keys {
		if k := &w.many.keys[i]; !w.here(k) {
			missing = append(missing, view.Range{First: k.Place, Last: k.Place})
		}
	}
	if len(missing) == 0 {
		w.noteMany()
		return true
	}
	w.elsewhere(op, view.RangesOf(missing...))
	return false
}

// noteMany tells the balancer which keys are used, and that they are used together.
func (w *worker) noteMany() {
	if w.noting == nil {
		return
	}
	for i := range w.many.keys {
		w.noting.Note(w.many.keys[i].Place)
		if i > 0 {
			w.noting.Together(w.many.keys[i-1].Place, w.many.keys[i].Place)
		}
	}
}

func (w *worker) multiGet(op *wire.Op) bool {
	m := &w.many
	m.reset()
	for rest := op.Arg; len(rest) > 0; {
		key, next, err := wire.NextKey(rest)
		if err != nil {
			w.refuse(op, wire.Invalid, "the keys of a multi-get make no sense")
			return true
		}
		m.add(w.sess, op.Table, key)
		rest = next
	}
	if !w.serves(op) {
		return true
	}
	m.grow()
	w.sess.GetBatch(m.keys, m.views[:len(m.keys)], m.stats[:len(m.keys)])
	m.out = m.out[:0]
	for i := range m.keys {
		if m.stats[i] == store.Cold {
			return false
		}
		if len(m.out)+len(m.views[i].Value) > w.maxAnswer() {
			w.refuse(op, wire.TooLarge, "the values do not fit one answer: ask for fewer keys at a time")
			return true
		}
		w.appendValue(&m.views[i], m.stats[i])
	}
	w.answer(op, wire.Result{Value: m.out})
	if cap(m.out) > keepBytes {
		m.out = nil
	}
	return true
}

func (w *worker) appendValue(v *store.View, st store.Status) {
	r := wire.Value{}
	switch st {
	case store.OK:
		r = wire.Value{Version: v.Version, ExpireAt: v.ExpireAt, Value: v.Value}
	case store.NotFound:
		r.Status = wire.NotFound
	default:
		r.Status, r.Value = w.failure(st)
	}
	w.many.out = wire.AppendValue(w.many.out, &r)
}

// multiPut writes several records in one transaction: all or none.
func (w *worker) multiPut(op *wire.Op) bool {
	m := &w.many
	m.reset()
	for rest := op.Arg; len(rest) > 0; {
		p, next, err := wire.NextPut(rest)
		if err != nil {
			w.refuse(op, wire.Invalid, "the records of a multi-put make no sense")
			return true
		}
		m.add(w.sess, op.Table, p.Key)
		m.puts = append(m.puts, p)
		rest = next
	}
	if len(m.puts) == 0 {
		w.answer(op, wire.Result{})
		return true
	}
	if !w.serves(op) {
		return true
	}
	result, st := w.putAll(op)
	w.rmw.status, w.rmw.version, w.rmw.value = result.Status, 0, result.Value
	return w.done(op, st)
}

// putAll runs the transaction, with the record of its outcome if it has an identity.
func (w *worker) putAll(op *wire.Op) (wire.Result, store.Status) {
	m := &w.many
	n := len(m.puts)
	once := op.Flags&wire.FlagOnce != 0
	if once {
		m.keys = append(m.keys, w.sess.OpKey(m.keys[0].Place, w.id(op)))
	}
	if st := w.sess.Lock(m.keys); st != store.OK {
		return wire.Result{}, st
	}
	if once {
		if v, st := w.sess.Get(&m.keys[n]); st == store.OK {
			w.tally.repeated++
			r := decodeOutcome(v.Value)
			w.sess.Abort()
			return r, store.OK
		}
	}
	for i := range m.puts {
		p := &m.puts[i]
		if st := w.sess.Put(&m.keys[i], store.Write{Value: p.Value, ExpireAt: p.ExpireAt}, nil); st != store.OK {
			w.sess.Abort()
			return wire.Result{}, st
		}
	}
	if once {
		w.rmw.result = append(appendOutcome(w.rmw.result[:0], &wire.Result{}), make([]byte, 8)...)
		if st := w.sess.Complete(&m.keys[n], w.rmw.result); st != store.OK {
			w.sess.Abort()
			return wire.Result{}, st
		}
	}
	return wire.Result{}, w.sess.Commit()
}
