package extension

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
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
	// Clock is the tenant's, which all its pools share; nil: one of this pool's own.
	Clock *Clock
	// Seed makes random bytes the same in every run; nil: they never are.
	Seed *[32]byte
}

// ErrBusy is a call for which there is no instance.
var ErrBusy = errors.New("all instances of the function are busy: call it again later, or allow more of them")

// ErrClosed is a call of a function that was replaced or deleted.
var ErrClosed = errors.New("the function was deleted or replaced")

// Pool has the instances of one tenant's module. Its calls may run at the same time.
//
// An instance belongs to one call, or to the slot of a worker, or to the list. Whoever swaps it out of a slot owns it;
// the list and all that counts is for who holds the lock. A worker that calls again and again finds its instance in its
// slot, and takes no lock.
type Pool struct {
	module     *Module
	opts       PoolOptions
	limits     CallLimits
	stackBytes int
	slots      []slot // as many as a power of two
	closed     atomic.Bool
	image      atomic.Pointer[image]

	mu      sync.Mutex
	idle    []*instance // beyond the slots
	made    int         // instances that are there, idle or not
	number  uint64
	metrics Metrics
}

// Metrics count what a pool has done. Calls that run now, and a few of those before them on the same instance, are
// counted when they have ended.
type Metrics struct {
	Calls, Failures uint64
	Abandoned       uint64 // of failures: trials that were given up
	Fuel            uint64
	HostCalls       uint64
	Made, Reused    uint64 // instances
	Reset           uint64 // instances that began anew after a call was ended in their middle
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
		opts.Clock = new(Clock)
	}
	p := &Pool{module: m, opts: opts, limits: limits.Call, stackBytes: limits.Module.StackBytes}
	p.slots = make([]slot, slotsFor(opts.Idle))
	return p, nil
}

// slotsMost bounds what a pool costs by itself.
const slotsMost = 16

func slotsFor(idle int) int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < slotsMost && 2*n <= idle {
		n *= 2
	}
	return n
}

func (p *Pool) scarce() bool { return p.opts.Memory != nil && p.opts.Memory.Scarce() }

// Trim closes idle instances but so many.
func (p *Pool) Trim(keep int) {
	p.mu.Lock()
	p.gather()
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
	p.closed.Store(true)
	p.Trim(0)
	p.module.imaging.Lock()
	defer p.module.imaging.Unlock()
	p.image.Swap(nil).close()
}

// Metrics are those of now.
func (p *Pool) Metrics() Metrics {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gather()
	m := p.metrics
	m.Instances, m.Idle = p.made, len(p.idle)
	return m
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
		in, err := p.take(&p.slots[0], nil, false)
		if err != nil {
			return err
		}
		made = append(made, in)
	}
	return nil
}

func (p *Pool) giveBack(in *instance) {
	p.mu.Lock()
	keep := !p.closed.Load()
	if keep {
		p.idle = append(p.idle, in)
	} else {
		p.forget(in)
	}
	p.mu.Unlock()
	if !keep {
		in.close()
	}
}
