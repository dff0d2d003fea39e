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
}

var _ Turns = (*sched.Turn)(nil)

// Invocation is one call of a function.
type Invocation struct {
	Function string
	Keys     [][]byte
	Args     [][]byte
	ReadOnly bool
	Store    Store
	Turns    Turns                        // nil: the goroutine gives way at the end of slices
	Log      func(level int, line []byte) // nil: lines are dropped; a line is valid during the call
	Into     []byte                       // what the response is appended to
	Fuel     int64                        // 0: what the limits say
	// Trial is a first attempt with little fuel, which ends with ErrAbandoned if that or the store does not suffice.
	Trial  bool
	Worker int // who calls; each has a warm instance of its own
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

	budget    int64 // fuel that was not given out in slices yet
	granted   int64
	hostCalls int64
	slices    int
	cause     *CallError

	resp      []byte
	respStart int
	views     [][]byte
	viewBytes int
	buffers   []buffer
	changes   Changes
	names     []byte // keys of reads
	wroteSum  int
	logged    int
	lost      int
}

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
	t.hostCalls, t.slices, t.cause = 0, 0, nil
	t.resp, t.respStart = inv.Into, len(inv.Into)
	t.viewBytes, t.wroteSum, t.logged, t.lost = 0, 0, 0, 0
}

// callUnits is the fuel that a call costs by itself.
const callUnits = 100

// keptBytes is what of a task's buffers is kept for the next call.
const keptBytes = 64 << 10

// end forgets what the call left, and keeps small buffers.
func (t *Task) end() {
	clear(t.views)
	clear(t.buffers)
	clear(t.changes.Reads)
	clear(t.changes.Writes)
	t.views, t.buffers = t.views[:0], t.buffers[:0]
	t.changes.Reads, t.changes.Writes = t.changes.Reads[:0], t.changes.Writes[:0]
	t.names = t.names[:0]
	if cap(t.names) > keptBytes {
		t.names = nil
	}
	if cap(t.changes.Reads) > 1024 || cap(t.changes.Writes) > 1024 || cap(t.views) > 1024 {
		t.changes, t.views, t.buffers = Changes{}, nil, nil
	}
	t.resp, t.inv, t.changes.Response = nil, nil, nil
}

// stop ends the guest from within a host call.
func (t *Task) stop(e *CallError) {
	t.cause = e
	panic(e)
}

// abandon ends a guest whose store could not answer.
func (t *Task) abandon() {
	t.stop(&CallError{Kind: Broken, Message: "needs what is not at hand", Err: ErrAbandoned})
}

func (t *Task) misuse(message string) { t.stop(&CallError{Kind: Misused, Message: message}) }

func (t *Task) over(message string) { t.stop(&CallError{Kind: OverLimit, Message: message}) }

// slice gives a guest that has used up its slice the next one, after others had their turn.
func (t *Task) slice(left int64) int64 {
	t.slices++
	if !t.inv.Trial {
		t.yield(SliceEnd)
	}
	if t.budget < -left {
		t.stop(&CallError{Kind: OutOfFuel, Message: "used up its fuel"})
	}
	grant := min(t.limits.Slice-left, t.budget)
	t.budget -= grant
	t.granted += grant
	return left + grant
}

func (t *Task) yield(why Reason) {
	if t.inv.Turns == nil {
		if why == SliceEnd {
			runtime.Gosched()
		}
		return
	}
	if err := t.inv.Turns.Yield(why); err != nil {
		t.stop(&CallError{Kind: Killed, Message: "was ended: " + err.Error(), Err: err})
	}
}

// spend charges for what the host does.
func (t *Task) spend(units int64) {
	if t.budget -= units; t.budget < 0 {
		t.budget = 0
		t.stop(&CallError{Kind: OutOfFuel, Message: "used up its fuel"})
	}
}

// enter counts a host call.
func (t *Task) enter() {
	if t.hostCalls++; t.hostCalls > t.limits.HostCalls {
		t.over("made too many host calls")
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
