package redis

import (
	"errors"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	calls "github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/sched"
)

// FCALL runs a function that is installed. A short one runs right here, in the round of the loop. Another one goes
// to the scheduler, and its connection waits; when it has ended the command runs again, finds the result, and
// commits it. So what it wrote is gated, held and released as every write is.

const (
	errNumKeys     = "ERR Bad number of keys provided"
	errMoreKeys    = "ERR Number of keys can't be greater than number of args"
	errFewKeys     = "ERR Number of keys can't be negative"
	errNoFunction  = "ERR Function not found"
	errNoFunctions = "ERR this server has no functions"

	functionKey = 3 // which argument its first key is

	errNoFunctionInMulti = "ERR functions are not called inside a transaction: a function is one by itself"
)

func fcall(c *call) verdict   { return c.fcall(false) }
func fcallRO(c *call) verdict { return c.fcall(true) }

// fcallKeys are the keys that FCALL names; nil if it makes no sense.
func fcallKeys(args [][]byte) [][]byte {
	n, refusal := keyNumber(args)
	if refusal != "" {
		return nil
	}
	return args[3 : 3+n]
}

// keyNumber is how many keys FCALL says that it has, or what is wrong with that.
func keyNumber(args [][]byte) (int, string) {
	if len(args) < 3 {
		return 0, errNumKeys
	}
	n, ok := parseInt(args[2])
	switch {
	case !ok:
		return 0, errNumKeys
	case n > int64(len(args)-3):
		return 0, errMoreKeys
	case n < 0:
		return 0, errFewKeys
	}
	return int(n), ""
}

func (c *call) fcall(readOnly bool) verdict {
	n, refusal := keyNumber(c.args)
	if refusal != "" {
		return c.fail(refusal)
	}
	shelf := c.conn.functions()
	if shelf == nil {
		return c.fail(errNoFunctions)
	}
	r := &c.request
	r.Shelf, r.Share, r.Account = shelf, c.conn.turns(), c.conn.account()
	r.Name, r.Keys, r.Args, r.ReadOnly = c.args[1], c.args[3:3+n], c.args[3+n:], readOnly
	r.Scope = calls.Scope{Table: c.db, First: c.conn.firstDB, Tables: c.conn.databases}
	r.Named = nil
	if n > 0 {
		r.Named = c.conn.loop.Load().named(r.Keys[0], c.db)
	}
	c.stand(r)
	if !c.running {
		c.running = true
		c.caller.Begin()
	}
	v, task := c.caller.Call(r, c.conn.resume.task)
	c.conn.resume.task = nil
	switch v {
	case calls.Cold:
		c.conn.resume.task = task
		return cold
	case calls.Later:
		return c.runLater(r, task)
	}
	if c.caller.Err != nil {
		return c.fail(functionFailure(c.args[1], c.caller.Err))
	}
	c.out.Bulk(c.caller.Response)
	return done
}

// stand tells a call what the node serves.
func (c *call) stand(r *calls.Request) {
	switch {
	case c.routing == nil:
		r.Ground, r.Grounds = nil, nil
	case c.conn.asking:
		r.Ground, r.Grounds = (*askedRouting)(c.routing), c.srv.groundsAsked
	default:
		r.Ground, r.Grounds = c.routing, c.srv.grounds
	}
}

// Standing is what the node does with a place.
func (r *Routing) Standing(p record.Place) calls.Standing {
	if r.Serves(p) {
		return calls.Here
	}
	switch r.part(p).state {
	case slotRecovering:
		return calls.Coming
	case slotExporting:
		return calls.Leaving
	}
	return calls.Away
}

// askedRouting is a routing for clients that were sent here.
type askedRouting Routing

// Standing is what the node does with a place for them.
func (r *askedRouting) Standing(p record.Place) calls.Standing {
	if (*Routing)(r).part(p).state == slotImporting {
		return calls.Here
	}
	return (*Routing)(r).Standing(p)
}

// runLater gives a call to the scheduler; the connection waits.
func (c *call) runLater(r *calls.Request, t *calls.Task) verdict {
	cn, loop := c.conn, c.conn.loop.Load()
	if refusal := cn.mayWait(); refusal != "" {
		t.Cancel()
		return c.fail(refusal)
	}
	err := c.srv.calls.Start(r, t, func() {
		loop.post(message{run: func() {
			if cn.resume.task == t && !cn.net.closed {
				loop.unpark(cn)
			}
		}})
	})
	if err != nil {
		cn.proceed()
		return c.fail(functionFailure(c.args[1], err))
	}
	cn.resume.task = t
	return later
}

// turns is the connection's tenant's part of the scheduler.
func (c *conn) turns() *sched.Share {
	if c.share == nil {
		c.share = c.srv.cfg.Tenants.Share(c.account())
	}
	return c.share
}

// dropTask forgets a call that the connection waits for.
func (c *conn) dropTask() {
	if t := c.resume.task; t != nil {
		t.Cancel()
		c.resume.task = nil
	}
}

// functionFailure is the answer to a call that has failed.
func functionFailure(name []byte, err error) string {
	if errors.Is(err, calls.ErrNotFound) {
		return errNoFunction
	}
	sentence := err.Error()
	var failed *extension.CallError
	if errors.As(err, &failed) {
		sentence = failed.Message
	}
	return functionCode(err) + " function " + cString(name) + ": " + sentence
}

// functionCode is the word that clients decide by.
func functionCode(err error) string {
	var exceeded *tenant.Exceeded
	var refused *calls.StoreError
	switch {
	case errors.As(err, &exceeded):
		return "QUOTA"
	case errors.As(err, &refused) && store.OutOfMemory(refused):
		return "OOM"
	case errors.Is(err, sched.ErrBusy), errors.Is(err, extension.ErrBusy):
		return "BUSY"
	case errors.Is(err, calls.ErrMoving), errors.Is(err, calls.ErrConflict):
		return "TRYAGAIN"
	}
	return "ERR"
}
