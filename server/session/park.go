package session

import (
	"bytes"
	"errors"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/wire"
)

// park is an operation that waits: for I/O, or for its records to arrive. It has bytes
// of its own, and is run again from its start.
type park struct {
	w        *worker
	c        *conn
	batch    wire.Batch
	op       wire.Op
	fetch    *store.Fetch // nil: it waits for records to arrive, or for task
	task     *call.Task   // a function that did not end at once
	outcome  *wire.Result // of what was done in the background
	deadline time.Time
	waits    bool // since its last attempt
}

// park lets the operation under way wait for f, or for its records to arrive if f is nil.
func (w *worker) park(op *wire.Op, f *store.Fetch) {
	p := w.on.park
	if p == nil {
		if err := w.on.c.mayWait(); err != nil {
			w.refuse(op, wire.Refused, err.Error())
			return
		}
		p = w.newPark(op)
		w.admitPark(p)
	}
	w.parkAs(p, f)
}

// parkAs lets a park wait for f, or for its records to arrive if f is nil.
func (w *worker) parkAs(p *park, f *store.Fetch) {
	p.fetch, p.waits = f, true
	if f == nil {
		w.arriving = append(w.arriving, p)
		if w.on.park == nil && len(w.arriving) == 1 {
			w.nudge() // So that it is looked at now and then. Who waits once more is seen by attend.
		}
		return
	}
	w.starting = append(w.starting, p)
}

func (w *worker) newPark(op *wire.Op) *park {
	p := &park{w: w, c: w.on.c, batch: w.on.batch, op: *op, deadline: time.Now().Add(w.srv.opts.WaitLimit)}
	p.op.Key, p.op.Arg = bytes.Clone(op.Key), bytes.Clone(op.Arg)
	return p
}

// admitPark counts one that waits from now on.
func (w *worker) admitPark(p *park) {
	p.c.wait(1)
	w.tally.waited++
	w.srv.count.waiting.Add(1)
}

// startFetches begins the I/O that operations of the round wait for.
func (w *worker) startFetches() {
	for i, p := range w.starting {
		w.starting[i] = nil
		w.fetching++
		p.fetch.Patience(w.srv.opts.WaitLimit)
		p.fetch.Start(func() { p.w.post(p) })
	}
	w.starting = w.starting[:0]
}

// goOn runs what waited and need not any more.
func (w *worker) goOn() {
	arrived := w.takeArrived()
	w.fetching -= len(arrived)
	waiting := w.arriving
	w.arriving = nil
	w.box.changed.Store(false)
	ended := w.takeEnded()
	if len(arrived)+len(waiting)+len(ended) == 0 {
		return
	}
	w.begin()
	for _, p := range arrived {
		f := p.fetch // The park may get another.
		w.resumed = append(w.resumed, f)
		w.sess.Resume(f)
		w.again(p, f.Err())
	}
	w.sess.Resume(nil)
	for _, p := range waiting {
		w.again(p, nil)
	}
	for _, p := range ended {
		w.again(p, nil)
	}
	ticket := w.finish()
	for i, o := range w.outs {
		w.outs[i] = outgoing{}
		o.out.seal()
		w.hold(ticket, o.c, o.out)
	}
	w.outs = w.outs[:0]
}

// again runs a parked operation, after which it may wait once more.
func (w *worker) again(p *park, err error) {
	p.waits = false
	w.retry(p, err)
	if !p.waits {
		if p.task != nil { // It was answered without it.
			p.task.Cancel()
		}
		w.srv.count.waiting.Add(-1)
		p.c.proceed()
	}
}

// retry is an attempt. When its connection is gone, nobody is left to answer: the operation need not
// run, and its client will send it again or not.
func (w *worker) retry(p *park, err error) {
	if p.c.closed.Load() {
		return
	}
	w.serve(target{c: p.c, out: w.outFor(p.c), batch: p.batch, park: p})
	switch a := p.c.purse.Account(); {
	case a != nil && a.Gone(): // Nothing of it comes into databases that are being emptied.
		w.refuse(&p.op, wire.Refused, deletedText)
	case p.outcome != nil:
		w.answer(&p.op, *p.outcome)
	case !w.accepts(view.ViewID(p.batch.View)):
		w.tally.moved++
		w.answer(&p.op, wire.Result{Status: wire.Moved})
	case store.Unsettled(err), errors.Is(err, store.ErrClosed):
		w.answer(&p.op, wire.Result{Status: wire.Busy})
	case err != nil:
		w.refuse(&p.op, wire.Failed, "read a record from disk: "+err.Error())
	default:
		var k store.Key
		w.sess.Name(&k, int(p.op.Table), p.op.Key)
		w.one(&p.op, &k)
	}
}

// outFor is the round's buffer for a connection.
func (w *worker) outFor(c *conn) *buffer {
	for i := range w.outs {
		if w.outs[i].c == c {
			return w.outs[i].out
		}
	}
	b := newBuffer()
	w.outs = append(w.outs, outgoing{c, b})
	return b
}
