package extension

import (
	"context"
	"runtime"
	"time"

	"github.com/ostrodb/ostro/tenant/sched"
)

// Reason is why a call lets others run.
type Reason = sched.Reason

// Reasons.
const (
	SliceEnd = sched.SliceEnd // it has used up its slice of fuel
	Asked    = sched.Asked    // the function called yield
	StoreUse = sched.StoreUse // it is about to use the store
)

// Turns is what a scheduler gives to a call: the place where it waits for its turn. Yield is called on the goroutine of
// the call, in the middle of it. It may return at once, or hand the worker to others and return when the call's next
// turn has come; an error ends the call.
type Turns interface {
	Yield(why Reason) error
	// Aloud runs f, which takes locks that others take who may not wait for a call of low priority.
	Aloud(f func())
}

var _ Turns = (*sched.Turn)(nil)

// Invocation is one call of a function. Whoever calls often keeps one and uses it again.
type Invocation struct {
	Function string
	Keys     [][]byte
	Args     [][]byte
	ReadOnly bool
	Store    Store
	Ahead    Ahead                        // the store, if it wants to know what will be read
	Placed   Placed                       // the store, if not everything is here
	Prompt   Prompt                       // the store, if it may be asked for what nobody needs yet
	Turns    Turns                        // nil: the goroutine gives way at the end of slices
	Log      func(level int, line []byte) // nil: lines are dropped; a line is valid during the call
	Into     []byte                       // what the response is appended to
	Fuel     int64                        // 0: what the limits say
	Worker   int                          // who calls: a worker finds the instance warm that it used last
	Trial    bool                         // the call is given up with ErrAbandoned if its fuel ends, or the store says Later
}

// Result is what a call gave.
type Result struct {
	Response  []byte
	Fuel      int64 // units used
	HostCalls int64
	Slices    int // ended before the call did
	Reads     int
	Writes    int
	LogsLost  int // lines over the limit
}

// Task is a call while it runs. It is the context that wazero hands to host functions, which so find it without a search.
type Task struct {
	in     *instance
	inv    *Invocation
	limits *CallLimits

	stack     [3]uint64 // arguments of the entry: which function, fuel, stack; its results: the function's, fuel left
	budget    int64     // fuel that was not given out in slices yet
	breath    int64     // what the budget is when the host has done as much as a guest may in a slice
	granted   int64
	held      int64 // of granted: what was given out last, so what the guest has at most
	hostCalls int64
	argsLen   int
	resp      []byte
	respStart int
	more      []*part // of a long response, what comes behind resp
	moreLen   int
	lent      int64 // bytes that the call keeps and the tenant's allowance knows of
	changes   Changes
	names     []byte   // keys of reads
	keys      [][]byte // of a multiget
	value     Value    // that was found last
	placed    bool     // the first key's value was put into the area
	learns    bool     // whether it should be is still to be found out
	used      [4]span  // of guest memory, by reads: where a value went, what told of several, what named them, where they went

	slices    int
	cause     *CallError
	views     [][]byte
	viewBytes int
	buffers   []buffer
	wroteSum  int
	logged    int
	lost      int
	private   bool   // has seen the tenant's clock or random bytes
	lines     []byte // logged by a trial: a byte of level, two of length, the line
}

// abandoned is the cause of a trial's end that leaves no trace.
var abandoned = CallError{Kind: Killed, Message: "was given up"}

// buffer is a value that is being made.
type buffer struct {
	write Write
	open  bool
}

// Context: a task never ends by itself.
func (t *Task) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is nil: there is nothing to wait for.
func (t *Task) Done() <-chan struct{} { return nil }

// Err is always nil.
func (t *Task) Err() error { return nil }

// Value holds nothing.
func (t *Task) Value(any) any { return nil }

var _ context.Context = (*Task)(nil)

func (t *Task) begin(in *instance, inv *Invocation, limits *CallLimits) {
	t.in, t.inv, t.limits = in, inv, limits
	t.budget = limits.Fuel
	if inv.Fuel > 0 {
		t.budget = inv.Fuel
	}
	t.budget = max(t.budget-callUnits, 0)
	t.granted = min(limits.Slice, t.budget)
	t.budget -= t.granted
	t.held = t.granted
	t.breath = t.budget - limits.Slice
	t.hostCalls, t.slices, t.cause = 0, 0, nil
	t.resp, t.respStart = inv.Into, len(inv.Into)
	t.viewBytes, t.wroteSum, t.logged, t.lost = 0, 0, 0, 0
	t.private, t.placed, t.learns = false, false, false
	t.value.task = t
}

// callUnits is the fuel that a call costs by itself.
const callUnits = 256

// keptBytes is what of a task's buffers is kept for the next call.
const keptBytes = 64 << 10

// end forgets what the call left, and keeps small buffers.
func (t *Task) end() {
	t.resp, t.inv, t.cause, t.changes.Response = nil, nil, nil, nil
	if t.moreLen > 0 {
		t.dropParts()
	}
	if t.lent > 0 {
		t.in.pool.opts.Memory.Release(t.lent)
		t.lent = 0
	}
	if len(t.changes.Reads) > 0 {
		clear(t.changes.Reads)
		t.changes.Reads = t.changes.Reads[:0]
	}
	t.names = t.names[:0] // There may be one without a read: what was taken back.
	if len(t.views) > 0 || len(t.buffers) > 0 || len(t.changes.Writes) > 0 {
		clear(t.views)
		clear(t.buffers)
		clear(t.changes.Writes)
		t.views, t.buffers, t.changes.Writes = t.views[:0], t.buffers[:0], t.changes.Writes[:0]
		t.value.Whole = nil
	}
	if cap(t.names) > keptBytes {
		t.names = nil
	}
	if cap(t.changes.Reads) > 1024 || cap(t.changes.Writes) > 1024 || cap(t.views) > 1024 {
		t.changes, t.views, t.buffers = Changes{}, nil, nil
	}
	t.lines = nil
}

// stop ends the guest from within a host call.
func (t *Task) stop(e *CallError) {
	t.cause = e
	panic(e)
}

func (t *Task) misuse(message string) { t.stop(&CallError{Kind: Misused, Message: message}) }

func (t *Task) over(message string) { t.stop(&CallError{Kind: OverLimit, Message: message}) }

// slice gives a guest that has used up its slice the next one, after others had their turn.
func (t *Task) slice(left int64) int64 {
	t.slices++
	if t.in.stack != nil && t.in.stackGrew() { // Before it has an entry it starts.
		t.watchStack()
	}
	if t.budget < -left && t.inv.Trial {
		t.abandon()
	}
	t.yield(SliceEnd)
	if t.budget < -left {
		t.outOfFuel()
	}
	grant := min(t.limits.Slice-left, t.budget)
	t.budget -= grant
	t.granted += grant
	t.held = left + grant
	t.breath = t.budget - t.limits.Slice
	return left + grant
}

func (t *Task) yield(why Reason) {
	if e := t.giveWay(why); e != nil {
		t.stop(e)
	}
}

// giveWay lets others run, and tells if the call is to end.
func (t *Task) giveWay(why Reason) *CallError {
	if t.inv.Turns == nil {
		if why == SliceEnd {
			runtime.Gosched()
		}
		return nil
	}
	if err := t.inv.Turns.Yield(why); err != nil {
		return &CallError{Kind: Killed, Function: t.inv.Function, Message: "was ended: " + err.Error(), Err: err}
	}
	return nil
}

// breathe lets others run after the host has worked for the call for as long as a slice takes: a guest that has others do its work
// uses little fuel itself.
func (t *Task) breathe() {
	t.breath = t.budget - t.limits.Slice
	if t.inv.Turns != nil { // Trials have less time than that.
		t.yield(SliceEnd)
	}
}

// spend charges for what the host does. What was given out is the guest's: if nothing else is left, as much is owed as
// the guest may still have, and due when it has used that up.
func (t *Task) spend(units int64) {
	if t.budget -= units; t.budget < -t.held {
		t.budget = 0
		t.outOfFuel()
	}
}

func (t *Task) outOfFuel() {
	if t.inv.Trial {
		t.abandon()
	}
	t.stop(&CallError{Kind: OutOfFuel, Message: "used up its fuel"})
}

func (t *Task) abandon() { t.stop(&abandoned) }

// later ends a call whose store cannot answer without waiting.
func (t *Task) later() {
	if t.inv.Trial {
		t.abandon()
	}
	t.stop(&CallError{Kind: Broken, Message: "found a store that would not wait"})
}

// enter counts a host call.
func (t *Task) enter() {
	if t.hostCalls++; t.hostCalls > t.limits.HostCalls {
		t.over("made too many host calls")
	}
	if t.budget < t.breath {
		t.breathe()
	}
}

// storeUse is where a call of the store begins.
func (t *Task) storeUse() {
	t.enter()
	if t.inv.Turns != nil {
		t.yield(StoreUse)
	}
}

// bytes is guest memory that a host call's arguments name.
func (t *Task) bytes(ptr, n uint64) []byte {
	b, ok := t.in.mem.at(uint32(ptr), uint32(n))
	if !ok {
		t.misuse("named memory that it does not have")
	}
	return b
}
