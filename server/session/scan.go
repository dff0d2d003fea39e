package session

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire"
)

// pageRecords and pageBytes bound a page of a scan.
const (
	pageRecords = 10_000
	pageBytes   = 4 << 20
	// pageSteps bounds how long one looks for records of a table that is small among others: the page may be empty.
	pageSteps = 256
)

// scan shows a page of the records at a range of places.
func (w *worker) scan(op *wire.Op) bool {
	s, err := wire.DecodeScan(op.Arg)
	if err != nil || s.First > s.Last || s.Count == 0 {
		w.refuse(op, wire.Invalid, "a scan goes from a first to a last place and asks for at least one record")
		return true
	}
	places := view.RangesOf(view.Range{First: record.Place(s.First), Last: record.Place(s.Last)})
	if !w.routing.Owned.Covers(places) || len(w.routing.Arriving.Intersect(places)) > 0 {
		w.elsewhere(op, places)
		return true
	}
	m := &w.many
	m.out = wire.AppendPage(m.out[:0], wire.Page{})
	cursor, st := w.page(op, &s)
	if st == store.Cold {
		return false
	}
	if st != store.OK {
		status, why := w.failure(st)
		w.answer(op, wire.Result{Status: status, Value: why})
		return true
	}
	wire.AppendPage(m.out[:0], wire.Page{Cursor: cursor, Resume: max(uint64(index.Passed(cursor)), s.First)})
	w.answer(op, wire.Result{Value: m.out})
	if cap(m.out) > keepBytes {
		m.out = nil
	}
	return true
}

// stepRecords is how many records are looked at before the page's size is.
const stepRecords = 64

// page fills the room with records from the cursor on, and returns where the next page
// begins. What is cold ends the page, unless it would be empty.
func (w *worker) page(op *wire.Op, s *wire.Scan) (uint64, store.Status) {
	m, cursor := &w.many, s.Cursor
	want := int(min(s.Count, pageRecords))
	for shown, steps := 0, 1; ; steps++ {
		m.reset()
		next, st := w.sess.ScanRange(int(op.Table), record.Place(s.First), record.Place(s.Last), cursor, min(want-shown, stepRecords), func(key []byte, _ *store.View) {
			m.add(w.sess, op.Table, key)
		})
		if st == store.OK {
			st = w.appendRecords(s.Values)
		}
		if st == store.Cold && shown > 0 {
			return cursor, store.OK
		}
		if st == store.Cold {
			w.owe(int64(w.sess.Wanted())) // Each record that is read for it is an operation, as in a get.
		}
		if st != store.OK {
			return 0, st
		}
		w.owe(1)
		cursor, shown = next, shown+len(m.keys)
		if cursor == 0 || shown >= want || len(m.out) >= pageBytes || steps == pageSteps {
			return cursor, store.OK
		}
	}
}

// appendRecords reads the keys that a step has found and adds their records to the page.
func (w *worker) appendRecords(values bool) store.Status {
	m := &w.many
	m.grow()
	w.sess.GetBatch(m.keys, m.views[:len(m.keys)], m.stats[:len(m.keys)])
	for i := range m.keys {
		if st := m.stats[i]; st != store.OK && st != store.NotFound {
			return st
		}
	}
	for i := range m.keys {
		if m.stats[i] == store.NotFound {
			continue // It went meanwhile.
		}
		v := &m.views[i]
		rec := wire.Record{Key: m.keys[i].Bytes, Version: v.Version, ExpireAt: v.ExpireAt}
		if values && v.Kind == record.KindString {
			rec.Value = v.Value
		}
		m.out = wire.AppendRecord(m.out, &rec)
	}
	return store.OK
}
