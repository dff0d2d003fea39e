package extension

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// PoolOptions are those of a Pool.
type PoolOptions struct {
	Limits CallLimits
	// Fresh begins every call with memory as it was after initialization, instead of as the last call left it.
	Fresh bool
	// Instances is how many there are at most; calls beyond get ErrBusy. 0: as many as there are calls.
	Instances int
	// Idle is how many are kept without work. 0: 16.
	Idle int
	// Memory is what the instances' memory is taken from; nil: there is enough.
	Memory Allowance
	// Clock is the tenant's; nil: the machine's.
	Clock func() time.Time
	// Seed makes random bytes the same in every run; nil: they never are.
	Seed *[32]byte
}

// ErrBusy is a call for which there is no instance.
var ErrBusy = errors.New("all instances of the function are busy: call it again later, or allow more of them")

// ErrAbandoned is a trial that did not suffice. Nothing was applied.
var ErrAbandoned = errors.New("the call needs more than a trial")

// ErrClosed is a call of a function that was replaced or deleted.
var ErrClosed = errors.New("the function was deleted or replaced")

// Pool has the instances of one tenant's module. Its calls may run at the same time.
type Pool struct {
	module     *Module
	opts       PoolOptions
	limits     CallLimits
	stackBytes int

	last    atomic.Int64 // the latest time that was told
	mu      sync.Mutex
	idle    []*instance
	made    int // instances that are there, idle or not
	number  uint64
	closed  bool
	metrics Metrics
}

// Metrics count what a pool has done.
type Metrics struct {
	Calls, Failures uint64
	Fuel            uint64
	HostCalls       uint64
	Made, Reused    uint64 // instances
	Instances, Idle int
}

// NewPool makes a pool without instances.
func (m *Module) NewPool(limits Limits, opts PoolOptions) (*Pool, error) {
	if opts.Fresh && !m.about.Metering.Restorable {
		return nil, errors.New("the module changes its tables, so its memory alone does not begin anew: it cannot be fresh for every call")
	}
	if opts.Idle == 0 {
		opts.Idle = 16
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	return &Pool{module: m, opts: opts, limits: limits.Call, stackBytes: limits.Module.StackBytes}, nil
}

// Call runs a function to its end. Errors are a *CallError, ErrBusy or ErrClosed, or name a wrong invocation.
func (p *Pool) Call(inv *Invocation) (Result, error) {
	if n := argsLen(inv); n > p.limits.ArgumentBytes {
		return Result{}, fmt.Errorf("arguments of %d bytes, and the limit is %d", n, p.limits.ArgumentBytes)
	}
	export, ok := p.module.exports[inv.Function]
	if !ok {
		return Result{}, p.module.lacks(inv.Function)
	}
	in, err := p.take()
	if err != nil {
		return Result{}, err
	}
	t := &in.task
	t.begin(in, inv, &p.limits)
	err = in.run(export)
	if inv.Trial && isUnfinished(err) {
		err = ErrAbandoned
	}
	if err == nil {
		err = t.conclude(uint32(in.ret[0]))
	}
	res := t.result(err)
	usable := err == nil || isReturned(err)
	t.end()
	p.put(in, usable, res, err)
	return res, err
}

// isUnfinished tells of a call that may well end with more fuel, or where the store can wait.
func isUnfinished(err error) bool {
	var e *CallError
	return errors.As(err, &e) && (e.Kind == OutOfFuel || errors.Is(e.Err, ErrAbandoned))
}

// isReturned tells of failures after which an instance is as good as before: the guest ended by itself.
func isReturned(err error) bool {
	var e *CallError
	return errors.As(err, &e) && (e.Kind == Returned || e.Kind == NotCommitted)
}

// conclude applies the writes of a guest that has returned.
func (t *Task) conclude(code uint32) error {
	name := t.inv.Function
	if code != 0 {
		return &CallError{Kind: Returned, Function: name, Code: int32(code), Message: fmt.Sprintf("returned error code %d", int32(code))}
	}
	if len(t.changes.Writes) == 0 && len(t.changes.Reads) < 2 {
		return nil
	}
	t.changes.Response = t.resp[t.respStart:]
	if err := t.inv.Store.Commit(&t.changes); err != nil {
		return &CallError{Kind: NotCommitted, Function: name, Message: "was not applied: " + err.Error(), Err: err}
	}
	return nil
}

func (t *Task) result(err error) Result {
	res := Result{
		HostCalls: t.hostCalls, Slices: t.slices, LogsLost: t.lost,
		Reads: len(t.changes.Reads), Writes: len(t.changes.Writes),
	}
	start := t.limits.Fuel
	if t.inv.Fuel > 0 {
		start = t.inv.Fuel
	}
	// What a guest that was ended held in registers is not known: it is charged its whole slice.
	res.Fuel = start - t.budget
	if err == nil {
		res.Fuel -= max(int64(t.in.fuel.Get()), 0)
		res.Response = t.resp
	}
	return res
}

// take finds an idle instance or makes one.
func (p *Pool) take() (*instance, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if n := len(p.idle); n > 0 {
		in := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.metrics.Reused++
		p.mu.Unlock()
		return in, nil
	}
	if p.opts.Instances > 0 && p.made >= p.opts.Instances {
		p.mu.Unlock()
		return nil, ErrBusy
	}
	p.made++
	p.metrics.Made++
	p.mu.Unlock()
	return p.make()
}

func (p *Pool) make() (*instance, error) {
	in, err := p.newInstance()
	if err != nil {
		p.mu.Lock()
		p.made--
		p.mu.Unlock()
	}
	return in, err
}

// put takes an instance back after a call. One that was ended in the middle may hold anything: it goes.
func (p *Pool) put(in *instance, usable bool, res Result, err error) {
	if usable && p.opts.Fresh {
		im := p.module.imageIfAny()
		usable = im != nil && im.reset(in)
	}
	p.mu.Lock()
	p.metrics.Calls++
	p.metrics.Fuel += uint64(res.Fuel)
	p.metrics.HostCalls += uint64(res.HostCalls)
	if err != nil {
		p.metrics.Failures++
	}
	keep := usable && !p.closed && len(p.idle) < p.opts.Idle && !p.scarce()
	if keep {
		p.idle = append(p.idle, in)
	} else {
		p.made--
	}
	p.mu.Unlock()
	if !keep {
		in.close()
	}
}

func (p *Pool) scarce() bool { return p.opts.Memory != nil && p.opts.Memory.Scarce() }

// Trim closes idle instances but so many.
func (p *Pool) Trim(keep int) {
	p.mu.Lock()
	var gone []*instance
	if n := len(p.idle); n > keep {
		gone = append(gone, p.idle[:n-keep]...)
		p.idle = append(p.idle[:0], p.idle[n-keep:]...)
		p.made -= len(gone)
	}
	p.mu.Unlock()
	for _, in := range gone {
		in.close()
	}
}

// Close ends the pool. Calls that run go on to their end.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Trim(0)
}

// Metrics are those of now.
func (p *Pool) Metrics() Metrics {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.metrics
	m.Instances, m.Idle = p.made, len(p.idle)
	return m
}

// now is the tenant's time: in whole milliseconds, and never before what was told already.
func (p *Pool) now() int64 {
	at := p.opts.Clock().Truncate(time.Millisecond).UnixNano()
	for {
		last := p.last.Load()
		if at <= last {
			return last
		}
		if p.last.CompareAndSwap(last, at) {
			return at
		}
	}
}

// chances is a source of random bytes for one instance.
func (p *Pool) chances() *rand.ChaCha8 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	seed := p.seed()
	for i := range 8 {
		seed[i] ^= byte(p.number >> (8 * i))
	}
	return rand.NewChaCha8(seed)
}

// Warm makes instances until so many are idle, which also shows that the module can be instantiated.
func (p *Pool) Warm(n int) error {
	var made []*instance
	defer func() {
		for _, in := range made {
			p.giveBack(in)
		}
	}()
	for range min(n, p.opts.Idle) {
		in, err := p.take()
		if err != nil {
			return err
		}
		made = append(made, in)
	}
	return nil
}

func (p *Pool) giveBack(in *instance) {
	p.mu.Lock()
	keep := !p.closed
	if keep {
		p.idle = append(p.idle, in)
	} else {
		p.made--
	}
	p.mu.Unlock()
	if !keep {
		in.close()
	}
}
