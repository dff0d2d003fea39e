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
	from := i
	w.caller.Begin()
	for ; i < n && w.ops[i].Code == wire.OpInvoke; i++ {
		if op, k := &w.ops[i], &w.keys[i]; op.Table == noTable || !w.here(k) {
			w.one(op, k)
		} else {
			w.invoke(op, k)
		}
	}
	w.caller.End()
	w.calling.Forget()
	return i - from
}

// invoke runs an installed function: in this round if it is short. Another one goes to the scheduler, and the operation
// waits alone; when it has ended the operation is executed again, finds the result, and commits it.
func (w *worker) invoke(op *wire.Op, k *store.Key) bool {
	c, v := w.on.c, &w.calling
	if err := v.Decode(op.Key, op.Arg); err != nil {
		w.refuse(op, wire.Invalid, "the argument of "+op.Code.String()+" makes no sense: "+err.Error())
		return true
	}
	if c.shelf == nil {
		w.refuse(op, wire.Unknown, "this server has no functions")
		return true
	}
	r := &w.request
	r.Shelf, r.Share, r.Account, r.Site, r.Worker = c.shelf, c.share, c.purse.Account(), w.site(), c.w.number
	r.Name, r.Keys, r.Args = v.Name, v.Keys, v.Args
	r.Named = k
	r.Scope = call.Scope{Table: int(op.Table), First: int(c.first), Tables: int(c.tables)}
	r.ReadOnly = op.Flags&wire.FlagReadOnly != 0
	r.Once, r.ID, r.Object = op.Flags&wire.FlagOnce != 0 && !r.ReadOnly, w.id(op), k.Place
	r.Ground, r.Grounds, r.Closed = w.ground(), w.srv.grounds, &c.closed
	return w.call(op, r)
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

func (w *worker) call(op *wire.Op, r *call.Request) bool {
	var task *call.Task
	if p := w.on.park; p != nil {
		task, p.task = p.task, nil
	}
	verdict, task := w.caller.Call(r, task)
	switch {
	case verdict == call.Cold:
		w.parkCold(op, task)
	case verdict == call.Later:
		w.parkCall(op, r, task)
	case w.caller.Err != nil:
		w.answer(op, wire.Result{Status: callStatus(w.caller.Err), Value: []byte(callSentence(r.Name, w.caller.Err))})
	default:
		w.answer(op, wire.Result{Value: w.caller.Response})
	}
	return true
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
