package session

import (
	"errors"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/sched"
	"github.com/ostrodb/ostro/wire"
)

// invokes executes the calls from i on, before something else comes, as a run, and tells how many there were.
func (w *worker) invokes(i, n int) int {
	from, r := i, &w.request
	w.caller.Begin()
	w.introduce(r)
	for ; i < n && w.ops[i].Code == wire.OpInvoke; i++ {
		op, k := &w.ops[i], &w.keys[i]
		if op.Table == noTable || !w.here(k) {
			w.one(op, k)
			continue
		}
		if !w.understand(r, op, k) {
			continue
		}
		v, task := w.caller.Prepare(r, nil)
		for v == call.Ready {
			v, task = w.caller.Leave(r, task, w.caller.Enter())
		}
		w.called(op, r, v, task)
	}
	w.caller.End()
	w.calling.Forget()
	return i - from
}

// invoke runs an installed function: in this round if it is short. Another one goes to the scheduler, and the operation
// waits alone; when it has ended the operation is executed again, finds the result, and commits it.
func (w *worker) invoke(op *wire.Op, k *store.Key) bool {
	r := &w.request
	w.introduce(r)
	if !w.understand(r, op, k) {
		return true
	}
	var task *call.Task
	if p := w.on.park; p != nil {
		task, p.task = p.task, nil
	}
	v, task := w.caller.Call(r, task)
	w.called(op, r, v, task)
	return true
}

// introduce says in a request who calls.
func (w *worker) introduce(r *call.Request) {
	c := w.on.c
	r.Shelf, r.Share, r.Account, r.Site, r.Worker = c.shelf, c.share, c.purse.Account(), w.site(), c.w.number
	r.Scope.First, r.Scope.Tables = int(c.first), int(c.tables)
	r.Ground, r.Grounds, r.Closed = w.ground(), w.srv.grounds, &c.closed
}

// understand says in it what an operation calls; false if that makes no sense: then it was answered.
func (w *worker) understand(r *call.Request, op *wire.Op, k *store.Key) bool {
	v := &w.calling
	if err := v.Decode(op.Key, op.Arg); err != nil {
		w.refuse(op, wire.Invalid, "the argument of "+op.Code.String()+" makes no sense: "+err.Error())
		return false
	}
	if r.Shelf == nil {
		w.refuse(op, wire.Unknown, "this server has no functions")
		return false
	}
	r.Name, r.Keys, r.Args = v.Name, v.Keys, v.Args
	r.Named, r.Object, r.Scope.Table = k, k.Place, int(op.Table)
	r.ReadOnly = op.Flags&wire.FlagReadOnly != 0
	r.Once = op.Flags&wire.FlagOnce != 0 && !r.ReadOnly
	r.ID.Client, r.ID.Seq = w.on.batch.Client, op.Sequence
	return true
}

// site is the connection's, unless the operation has waited: then its reader may be using it.
func (w *worker) site() *call.Site {
	if w.on.park != nil {
		return nil
	}
	c := w.on.c
	if c.site == nil {
		c.site = new(call.Site)
	}
	return c.site
}

// called answers a call, or lets it wait.
func (w *worker) called(op *wire.Op, r *call.Request, v call.Verdict, task *call.Task) {
	switch {
	case v == call.Cold:
		w.parkCold(op, task)
	case v == call.Later:
		w.parkCall(op, r, task)
	case w.caller.Err != nil:
		w.answer(op, wire.Result{Status: callStatus(w.caller.Err), Value: []byte(callSentence(r.Name, w.caller.Err))})
	default:
		w.on.out.add(&wire.Result{Tag: op.Tag, Value: w.caller.Response})
	}
}

// parkCold lets a call wait for what it has not in memory.
func (w *worker) parkCold(op *wire.Op, t *call.Task) {
	f := w.sess.TakeFetch()
	p := w.parkOf(op)
	if p == nil {
		return
	}
	if w.on.park == nil {
		w.admitPark(p)
	}
	p.task = t
	w.parkAs(p, f)
}

// parkCall lets the scheduler run a function.
func (w *worker) parkCall(op *wire.Op, r *call.Request, t *call.Task) {
	p := w.parkOf(op)
	if p == nil {
		return
	}
	if err := w.srv.calls.Start(r, t, func() { w.postCall(p) }); err != nil {
		w.answer(op, wire.Result{Status: callStatus(err), Value: []byte(callSentence(r.Name, err))})
		if w.on.park == nil {
			p.c.proceed()
		}
		return
	}
	if w.on.park == nil {
		w.admitPark(p)
	}
	p.task, p.fetch, p.waits = t, nil, true
}

// parkOf is the operation under way as one that may wait; nil if its tenant may not: then it was answered.
func (w *worker) parkOf(op *wire.Op) *park {
	if p := w.on.park; p != nil {
		return p
	}
	if err := w.on.c.mayWait(); err != nil {
		w.refuse(op, wire.Refused, err.Error())
		return nil
	}
	return w.newPark(op)
}

// postCall tells that a function has ended.
func (w *worker) postCall(p *park) {
	w.box.mu.Lock()
	w.box.ended = append(w.box.ended, p)
	w.box.mu.Unlock()
	w.nudge()
}

func (w *worker) takeEnded() []*park {
	w.box.mu.Lock()
	defer w.box.mu.Unlock()
	ended := w.box.ended
	w.box.ended = nil
	return ended
}

// Standing is what the node does with a place.
func (r *Routing) Standing(p record.Place) call.Standing {
	switch {
	case !r.Owned.Contains(p):
		return call.Away
	case len(r.Arriving) > 0 && r.Arriving.Contains(p):
		return call.Coming
	}
	return call.Here
}

// ground is what the node serves in this round; nil: everything.
func (w *worker) ground() call.Ground {
	if w.srv.grounds == nil {
		return nil
	}
	return w.routing
}

// callSentence tells why a call has failed.
func callSentence(name []byte, err error) string {
	if errors.Is(err, call.ErrNotFound) {
		return "there is no function " + string(name) + ": install the module that has it"
	}
	var failed *extension.CallError
	if errors.As(err, &failed) {
		return "function " + string(name) + ": " + failed.Message
	}
	return "function " + string(name) + ": " + err.Error()
}

// callStatus is what clients decide by.
func callStatus(err error) wire.Status {
	var exceeded *tenant.Exceeded
	var refused *call.StoreError
	switch {
	case errors.Is(err, call.ErrNotFound):
		return wire.Unknown
	case errors.As(err, &exceeded), errors.Is(err, sched.ErrBusy), errors.Is(err, extension.ErrBusy):
		return wire.Refused
	case errors.As(err, &refused) && refused.Status == store.Refused:
		return wire.Refused
	case errors.Is(err, call.ErrMoving), errors.Is(err, call.ErrConflict):
		return wire.Busy
	}
	return wire.Invalid
}
