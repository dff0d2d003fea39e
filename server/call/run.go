package call

import (
	"time"

	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
)

// run is calls of one tenant in a row, as a batch or a pipeline has them. What they have in common is found once: the
// function, its pool, an instance. So is the time: the clock is read when the function changes, after a long call, and
// at the end, and what went by is the calls' by their fuel.
type run struct {
	open  bool
	fn    *library.Function
	shelf *library.Shelf
	pool  *extension.Pool // nil: there is none now
	lease extension.Lease
	share *sched.Share
	site  *Site
	payer *tenant.Account // nil: nobody is charged for operations

	since time.Duration  // when the time began that nobody was charged for yet
	sum   library.Counts // of calls since
	most  int64          // fuel that one of them used
	lost  int64          // fuel of trials that came to nothing
}

// start is what times of runs are told from.
var start = time.Now()

// longFuel is what a call uses whose time is not to be mixed with others'.
const longFuel = 8192

// Begin says that calls of one tenant follow, with nothing else between them. End must come before the session's
// round ends, and before the caller's goroutine does anything that takes long.
func (c *Caller) Begin() {
	c.run.open, c.run.since = true, time.Since(start)
}

// End ends what Begin began.
func (c *Caller) End() {
	r := &c.run
	c.settle()
	if r.site != nil {
		r.site.learn(r, c.inv.Worker)
	}
	r.lease.End()
	r.open, r.fn, r.shelf, r.pool, r.share, r.site, r.payer = false, nil, nil, nil, nil, nil, nil
	c.inv.Keys, c.inv.Args, c.near.req, c.near.ground = nil, nil, nil, nil
}

// find looks a function up, unless it is the one that was called before; nil: there is none.
func (c *Caller) find(q *Request) *library.Function {
	r := &c.run
	if r.fn != nil && r.shelf == q.Shelf && string(q.Name) == r.fn.Name {
		return r.fn
	}
	c.settle()
	r.shelf, r.share, r.pool = q.Shelf, q.Share, nil
	r.site, r.payer, c.inv.Worker = q.Site, q.Account, q.Worker
	if q.Site != nil {
		r.fn = q.Shelf.FindBy(&q.Site.memo, q.Name)
	} else {
		r.fn = q.Shelf.Find(q.Name)
	}
	if r.fn != nil {
		r.pool, _ = r.fn.Pool()
	}
	return r.fn
}

// miss forgets the pool: it had no instance, or was closed, and there may be another one.
func (c *Caller) miss() {
	c.settle()
	c.run.fn, c.run.pool = nil, nil
}

// did counts a call that has ended well.
func (c *Caller) did(res *extension.Result) {
	r := &c.run
	r.sum.Calls++
	r.sum.AddResult(res)
	c.used += res.Fuel + callFuel
	r.most = max(r.most, res.Fuel)
	if res.Fuel > longFuel {
		c.settle()
	}
}

// failed counts one that has not.
func (c *Caller) failed(res *extension.Result) {
	c.run.sum.Failures++
	c.did(res)
}

// lost counts a trial that came to nothing: its time is the tenant's, but no call's.
func (c *Caller) lost(res *extension.Result) {
	c.run.lost += res.Fuel
	c.used += res.Fuel + callFuel
}

// settle charges the tenant for the time since it was last called, and counts the calls.
func (c *Caller) settle() {
	r := &c.run
	if r.sum.Calls == 0 && r.lost == 0 {
		return
	}
	now := time.Since(start)
	took := now - r.since
	r.since = now
	r.share.Charge(int64(took))
	if s := &r.sum; s.Calls > 0 {
		each := float64(took) / float64(max(s.Fuel+r.lost, 1))
		s.Time, s.Slowest = time.Duration(each*float64(s.Fuel)), time.Duration(each*float64(r.most))
		r.fn.Count(c.inv.Worker, s)
		c.host.count.inline.Add(s.Calls - s.Failures)
		*s = library.Counts{}
	}
	r.most, r.lost = 0, 0
}
