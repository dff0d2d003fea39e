// Package epoch lets threads share memory without locks and still free it.
// Whoever reads shared structures does so inside a guard; whoever takes
// something out of them defers its release until every guard that could still
// see it has moved on. The same mechanism makes a change of state visible to
// all workers without stopping one of them (an asynchronous cut).
//
//	unlink the object        no new guard can find it
//	t.Defer(release)         bumps the global epoch
//	...                      old guards leave or refresh, one by one
//	release()                run by whoever notices
//
// Invariants:
//   - The global epoch only grows. A guard inside publishes an epoch that was
//     current when it entered; outside it publishes zero.
//   - An action deferred at epoch e runs only once every published epoch is at
//     least e: such guards entered after the bump, hence after the unlinking.
//   - Actions run one at a time, in the order in which they were deferred, and
//     never under a lock that a worker could wait for.
//   - Entering and leaving write one cache line that no other guard writes.
package epoch

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Epoch counts the bumps of a table. Zero means "outside".
type Epoch uint64

// ErrFull says that all slots of a table are taken.
var ErrFull = errors.New("epoch: every slot is taken; open the table with more of them")

// Table is the protection table: one slot for each guard.
//
// Who owns what: a slot's epoch is written by its guard alone and read by all;
// taken is changed by CAS in Register and by the guard in Unregister. The queue
// belongs to the holder of mu, which is held for an append or a cut only.
// Actions belong to the holder of draining, which nobody waits for.
type Table struct {
	_       [64]byte
	current atomic.Uint64 // the global epoch
	newest  atomic.Uint64 // highest epoch at which something was deferred
	pending atomic.Int64  // actions not yet run
	high    atomic.Int64  // slots at or above this were never taken
	_       [64]byte

	slots []slot

	mu    sync.Mutex
	queue []action

	draining atomic.Bool
	wanted   atomic.Int64 // drains asked for since the last look at the slots
}

// slot is padded to two cache lines, for processors fetch lines in pairs.
type slot struct {
	epoch atomic.Uint64
	taken atomic.Bool
	skips uint32 // guard's own: leaves that did not look for work
	_     [128 - 16]byte
}

type action struct {
	epoch Epoch
	run   func()
}

// New returns a table for at most the given number of guards at a time.
func New(slots int) *Table {
	t := &Table{slots: make([]slot, max(slots, 1))}
	t.current.Store(1)
	return t
}

// Register takes a slot. The guard is for one goroutine at a time.
func (t *Table) Register() (*Guard, error) {
	for i := range t.slots {
		s := &t.slots[i]
		if s.taken.Load() || !s.taken.CompareAndSwap(false, true) {
			continue
		}
		t.raise(int64(i) + 1)
		return &Guard{table: t, slot: s}, nil
	}
	return nil, ErrFull
}

// raise makes every later look at the slots include the first n.
func (t *Table) raise(n int64) {
	for h := t.high.Load(); h < n; h = t.high.Load() {
		if t.high.CompareAndSwap(h, n) {
			return
		}
	}
}

// Bump raises the global epoch and returns the new one. When Safe has reached
// it, every guard that was inside during the call has left or refreshed.
func (t *Table) Bump() Epoch { return Epoch(t.current.Add(1)) }

// Safe returns the highest epoch that every guard has reached: nobody inside
// entered before it.
func (t *Table) Safe() Epoch {
	// The global epoch is read first. A guard found outside may enter right
	// after, but then it sees all that was unlinked before this bump.
	safe := t.current.Load()
	for i := range t.slots[:t.high.Load()] {
		if e := t.slots[i].epoch.Load(); e != 0 && e < safe {
			safe = e
		}
	}
	return Epoch(safe)
}

// Defer has f run once, after every guard that is inside now has left or
// refreshed. It never runs f itself, so the caller may be inside a guard and
// may hold locks that f takes. f may call Defer; it must not wait for guards.
func (t *Table) Defer(f func()) { t.Cut(f) }

// Cut is an asynchronous cut: the caller has published a new state, and act
// runs once every guard has passed into it. No worker waits for another. It
// returns the epoch that Safe must reach.
func (t *Table) Cut(act func()) Epoch {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Under the lock, so that the queue is ordered by epoch.
	e := t.Bump()
	t.queue = append(t.queue, action{e, act})
	t.newest.Store(uint64(e))
	t.pending.Add(1)
	return e
}

// Pending returns how many actions have not yet run.
func (t *Table) Pending() int { return int(t.pending.Load()) }

// Drain runs the actions that have become safe and returns how many it ran. If
// another goroutine is draining, that one also does this call's work.
func (t *Table) Drain() int {
	ran := 0
	t.wanted.Add(1)
	// Whoever fails to take the flag left its wish behind, and the holder looks
	// for wishes after giving the flag back: none is lost.
	for t.wanted.Load() > 0 && t.draining.CompareAndSwap(false, true) {
		t.wanted.Store(0)
		ran += t.runSafe()
		t.draining.Store(false)
	}
	return ran
}

func (t *Table) runSafe() int {
	ready := t.takeSafe()
	for _, a := range ready {
		a.run()
	}
	t.pending.Add(int64(-len(ready)))
	clear(ready) // The queue's array may live on; what the actions held must not.
	return len(ready)
}

// takeSafe cuts the safe front off the queue.
func (t *Table) takeSafe() []action {
	safe := t.Safe()
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for n < len(t.queue) && t.queue[n].epoch <= safe {
		n++
	}
	ready := t.queue[:n:n]
	t.queue = t.queue[n:]
	return ready
}

// Wait returns once every guard that is inside now has left or refreshed. It
// is for background work: the caller must not be inside a guard.
func (t *Table) Wait(ctx context.Context) error {
	e := t.Bump()
	for round := 0; t.Safe() < e; round++ {
		if err := pause(ctx, round); err != nil {
			return err
		}
	}
	return nil
}

// pause yields at first, then sleeps longer and longer, up to a millisecond.
func pause(ctx context.Context, round int) error {
	if round < 32 {
		runtime.Gosched()
		return ctx.Err()
	}
	timer := time.NewTimer(min(time.Millisecond, 10*time.Microsecond<<min(round-32, 10)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
