package session

import (
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire"
)

var errLeaseLost = &wire.Goodbye{Reason: wire.ReasonLeaseLost, Text: "the node's lease is over: ask another node"}

// round executes the whole frames that have arrived, on one worker between one Begin
// and End, and sends or holds what there is to answer.
func (c *conn) round() error {
	if !c.srv.gate.Alive() {
		return errLeaseLost // Nothing was executed.
	}
	w := c.worker()
	if w.ended {
		w.mu.Unlock()
		return errEnding
	}
	w.begin()
	out := newBuffer()
	err := w.execute(c, out)
	out.seal()
	ticket := w.finish()
	if !w.sess.Durable(ticket) {
		c.wait(out.answers)
		w.hold(ticket, c, out)
		w.mu.Unlock()
		return err
	}
	w.mu.Unlock()
	return c.release(out, err)
}

// release sends what is durable, unless the lease has ended meanwhile: then nobody may
// learn what was executed.
func (c *conn) release(out *buffer, err error) error {
	if len(out.b) == 0 {
		out.free()
		return err
	}
	if out.answers > 0 && !c.srv.gate.Alive() {
		c.close()
		return errLeaseLost
	}
	c.send(out)
	return err
}

// begin opens a round.
func (w *worker) begin() {
	w.sess.Begin()
	w.routing = w.srv.gate.Routing() // Under the guard; see Gate.
	w.all = w.everything()
	w.noting = w.gauge.Begin()
}

// finish seals what the round wrote and closes it.
func (w *worker) finish() store.Ticket {
	ticket := w.sess.SealRound()
	w.sess.End()
	w.on = target{}
	for i, f := range w.resumed {
		w.resumed[i] = nil
		f.Release()
	}
	w.resumed = w.resumed[:0]
	w.startFetches()
	w.publish()
	return ticket
}

func (w *worker) publish() {
	c, t := &w.srv.count, &w.tally
	c.rounds.Add(1)
	c.batches.Add(t.batches)
	c.operations.Add(t.operations)
	if t.stale|t.waited|t.moved|t.repeated != 0 {
		c.stale.Add(t.stale)
		c.waited.Add(t.waited)
		c.moved.Add(t.moved)
		c.repeated.Add(t.repeated)
	}
	*t = tally{}
}

// execute runs the frames in c's buffer until there is no whole one left or the
// answers are enough for this round.
func (w *worker) execute(c *conn, out *buffer) error {
	c.site.Expect()
	for len(out.b) < sliceBytes {
		t, body, n, _, err := wire.Next(c.in[c.start:], c.maxFrame())
		if err != nil || n == 0 {
			return err
		}
		c.start += n
		switch t {
		case wire.TypeBatch:
			err = w.batch(c, out, body)
		case wire.TypeRefresh:
			out.seal()
			out.b = wire.AppendMap(out.b, w.routing.Map)
		default:
			err = &wire.Goodbye{Reason: wire.ReasonMalformed, Text: "a client sends batches and refreshes, not a " + t.String() + " frame"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batch executes one batch, or rejects it whole.
func (w *worker) batch(c *conn, out *buffer, body []byte) error {
	ops, err := wire.DecodeBatch(body)
	if err != nil {
		return err
	}
	if !w.accepts(view.ViewID(ops.View)) {
		w.reject(out, &ops.Batch)
		return nil
	}
	if c.purse.Account() != nil && ops.Count > tenantOps {
		return &wire.Goodbye{Reason: wire.ReasonTooMany, Text: manyOpsText}
	}
	w.tally.batches++
	ops.Client = c.writer(ops.Client)
	c.traffic(len(body), 0)
	w.serve(target{c: c, out: out, batch: ops.Batch})
	if err := w.answered(&ops.Batch); err != nil {
		return err
	}
	for ops.More() {
		n, err := w.look32(&ops)
		if err != nil {
			return err
		}
		if n, err = w.charge(n); err != nil {
			return err
		}
		w.run32(n)
	}
	return nil
}

// look32 decodes up to a window of operations and names their keys.
func (w *worker) look32(ops *wire.Ops) (n int, err error) {
	for n < window && ops.More() {
		op := &w.ops[n]
		if err := ops.Next(op); err != nil {
			return 0, err
		}
		if op.Table = w.on.c.table(op.Table); op.Table != noTable {
			w.sess.Name(&w.keys[n], int(op.Table), op.Key)
			if w.noting != nil && len(op.Key) > 0 { // Operations on several keys have them elsewhere; see noteMany.
				w.noting.Note(w.keys[n].Place)
			}
		} else {
			w.keys[n] = store.Key{}
		}
		n++
	}
	return n, nil
}

// run32 executes the first n operations of the window in their order: runs of reads
// as batches, everything else with its records brought near.
func (w *worker) run32(n int) {
	w.tally.operations += int64(n)
	for _, sample := range w.routing.Samples {
		for i := range n {
			sample.Note(&w.keys[i])
		}
	}
	reads := w.reads(0, n)
	if reads < n && (n > 1 || w.ops[0].Code == wire.OpInvoke) { // One call has something to do until it needs its key.
		w.sess.Prefetch(w.keys[:n])
	}
	for i := 0; i < n; {
		switch {
		case reads > 0:
			w.readBatch(i, reads)
			i += reads
		case w.ops[i].Code == wire.OpInvoke:
			i += w.invokes(i, n)
		default:
			w.one(&w.ops[i], &w.keys[i])
			i++
		}
		reads = w.reads(i, n)
	}
}

// reads counts plain reads from i on that may be executed together.
func (w *worker) reads(i, n int) int {
	from := i
	for i < n && w.ops[i].Code == wire.OpRead && w.ops[i].Flags == 0 && w.ops[i].Table != noTable && w.here(&w.keys[i]) {
		i++
	}
	return i - from
}

func (w *worker) readBatch(from, n int) {
	w.sess.GetBatch(w.keys[from:from+n], w.views[from:from+n], w.stats[from:from+n])
	cold := false
	for i := from; i < from+n; i++ {
		if w.stats[i] == store.Cold {
			if !cold {
				cold = true
				w.sess.TakeFetch() // That of them all; each gets one of its own.
			}
			w.one(&w.ops[i], &w.keys[i])
			continue
		}
		w.answerRead(w.ops[i].Tag, &w.views[i], w.stats[i])
	}
}

// one executes an operation, or lets it wait.
func (w *worker) one(op *wire.Op, k *store.Key) {
	switch {
	case op.Table == noTable:
		w.refuse(op, wire.Unknown, "there is no such table: tables are numbered from 0, and the setting databases says how many there are; a tenant has its own")
		return
	case w.noRoom(op, k):
		return
	}
	if op.Code.Keyed() && !w.here(k) {
		w.elsewhere(op, view.RangesOf(view.Range{First: k.Place, Last: k.Place}))
		return
	}
	if !w.do(op, k) {
		w.park(op, w.sess.TakeFetch())
	}
}

// elsewhere answers an operation whose places are not all here: it waits for those that
// arrive, and goes to others for the rest.
func (w *worker) elsewhere(op *wire.Op, places view.Ranges) {
	if !w.routing.Owned.Covers(places) {
		w.tally.moved++
		w.answer(op, wire.Result{Status: wire.Moved})
		return
	}
	if w.srv.ending.Load() || w.on.park != nil && !w.on.park.deadline.After(time.Now()) {
		w.answer(op, wire.Result{Status: wire.Busy})
		return
	}
	w.park(op, nil)
}

// answer gives an operation its result.
func (w *worker) answer(op *wire.Op, r wire.Result) {
	r.Tag = op.Tag
	w.on.out.add(&r)
}

// refuse answers with a sentence.
func (w *worker) refuse(op *wire.Op, st wire.Status, why string) {
	w.answer(op, wire.Result{Status: st, Value: []byte(why)})
}
