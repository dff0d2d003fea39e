package library

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/tenant/extension"
)

// tally counts a function's calls on this node, whichever version it is. Who counts at the same time
// does so in parts of memory that cores do not share, as far as they give different workers.
type tally struct {
	parts atomic.Pointer[[]tallyPart] // nil: it was never called
}

type tallyPart struct {
	calls, failures, nanos, slowest atomic.Int64
	fuel, hostCalls, reads, writes  atomic.Int64
	bytes                           atomic.Int64
	_                               [7]int64 // two lines of a cache in all
}

var tallyParts = min(runtime.GOMAXPROCS(0), 8)

func (t *tally) part(worker int) *tallyPart {
	p := t.parts.Load()
	if p == nil {
		fresh := make([]tallyPart, tallyParts)
		if t.parts.CompareAndSwap(nil, &fresh) {
			p = &fresh
		} else {
			p = t.parts.Load()
		}
	}
	return &(*p)[uint(worker)%uint(len(*p))]
}

// Note counts a call that has ended: how, and how long it took. worker is a number that whoever runs at the same time
// does not give, too, if that can be.
func (f *Function) Note(worker int, r *extension.Result, err error, took time.Duration) {
	c := Counts{Calls: 1, Time: took, Slowest: took}
	if r != nil {
		c.AddResult(r)
	}
	if err != nil {
		c.Failures = 1
	}
	f.Count(worker, &c)
}

// Count adds what several calls did.
func (f *Function) Count(worker int, c *Counts) {
	p := f.tally.part(worker)
	p.calls.Add(c.Calls)
	p.nanos.Add(int64(c.Time))
	if int64(c.Slowest) > p.slowest.Load() {
		p.slowest.Store(int64(c.Slowest)) // Of two at the same time one may be lost: it is a hint.
	}
	add(&p.failures, c.Failures)
	add(&p.fuel, c.Fuel)
	add(&p.hostCalls, c.HostCalls)
	add(&p.reads, c.Reads)
	add(&p.writes, c.Writes)
	add(&p.bytes, c.Bytes)
}

// add leaves a counter alone that does not change.
func add(to *atomic.Int64, more int64) {
	if more != 0 {
		to.Add(more)
	}
}

// Counts are what calls have done on this node since its start.
type Counts struct {
	Calls     int64         `json:"calls"`
	Failures  int64         `json:"failures"`
	Time      time.Duration `json:"nanos"` // of all calls together
	Slowest   time.Duration `json:"slowestNanos"`
	Fuel      int64         `json:"fuel"`
	HostCalls int64         `json:"hostCalls"`
	Reads     int64         `json:"reads"`
	Writes    int64         `json:"writes"`
	Bytes     int64         `json:"bytes"` // of responses
}

// Add adds others.
func (c *Counts) Add(o *Counts) {
	c.Calls += o.Calls
	c.Failures += o.Failures
	c.Time += o.Time
	c.Slowest = max(c.Slowest, o.Slowest)
	c.Fuel += o.Fuel
	c.HostCalls += o.HostCalls
	c.Reads += o.Reads
	c.Writes += o.Writes
	c.Bytes += o.Bytes
}

// AddResult adds what a call gave and used, but not that there was one.
func (c *Counts) AddResult(r *extension.Result) {
	c.Fuel += r.Fuel
	c.HostCalls += r.HostCalls
	c.Reads += int64(r.Reads)
	c.Writes += int64(r.Writes)
	c.Bytes += int64(len(r.Response))
}

func (t *tally) counts() (sum Counts) {
	parts := t.parts.Load()
	if parts == nil {
		return sum
	}
	for i := range *parts {
		p := &(*parts)[i]
		sum.Add(&Counts{
			Calls: p.calls.Load(), Failures: p.failures.Load(), Time: time.Duration(p.nanos.Load()), Slowest: time.Duration(p.slowest.Load()),
			Fuel: p.fuel.Load(), HostCalls: p.hostCalls.Load(), Reads: p.reads.Load(), Writes: p.writes.Load(), Bytes: p.bytes.Load(),
		})
	}
	return sum
}
