package replica

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/fabric/ring"
)

// attendance is who looks for completions. Workers that are awake do it themselves, between their
// rounds: a poller that had to be woken by the NIC, and had to wake them in turn, would cost more than
// the writes. The poller sleeps in the completion queue when no worker is awake, or one
// sleeps that waits for a completion. Else it looks now and then only.
//
// Invariant: while a worker sleeps that waits, or none is awake, the poller is in the completion
// queue, on its way there, or parked for at most parkFor.
type attendance struct {
	open    atomic.Bool
	here    atomic.Int32 // workers that look
	waiting atomic.Int32 // workers that sleep and wait for a completion
	parked  atomic.Bool
	turn    chan struct{} // the poller is needed
	taking  sync.Mutex    // one takes completions at a time
	spinner ring.Spinner
}

const (
	// parkFor bounds how long completions lie about that no worker waits for.
	parkFor = time.Millisecond
	// lingerFor is about as long as a write takes through a NIC that has a core.
	lingerFor = 20 * time.Microsecond
)

func (a *attendance) begin() {
	a.turn = make(chan struct{}, 1)
	a.spinner.Limit, a.spinner.Yield = lingerFor, true
}

// others tells whether workers do the poller's work.
func (a *attendance) others() bool { return a.here.Load() > 0 && a.waiting.Load() == 0 }

// park waits until the poller is needed, or for a moment.
func (a *attendance) park(ctx context.Context, timer *time.Timer) {
	a.parked.Store(true)
	defer a.parked.Store(false)
	if !a.others() {
		return // Who left before it could see us parked was seen.
	}
	timer.Reset(parkFor)
	select {
	case <-ctx.Done():
	case <-a.turn:
	case <-timer.C:
	}
}

// Attend is called by a worker that wakes.
func (p *Primary) Attend(waited bool) {
	p.attendance.here.Add(1)
	if waited {
		p.attendance.waiting.Add(-1)
	}
}

// Leave is called by a worker that is going to sleep.
func (p *Primary) Leave(waiting bool) {
	a := &p.attendance
	if waiting {
		a.waiting.Add(1)
	}
	a.here.Add(-1)
	if waiting && a.parked.Load() {
		select {
		case a.turn <- struct{}{}:
		default:
		}
	}
}

// Look handles completions that are there, unless somebody does already.
func (p *Primary) Look() {
	a := &p.attendance
	if a.open.Load() && a.taking.TryLock() {
		p.take()
		a.taking.Unlock()
	}
}

// Linger looks until over says so, or polling does not pay.
func (p *Primary) Linger(over func() bool) {
	if !p.attendance.open.Load() {
		return
	}
	spin := p.attendance.spinner.Begin()
	for {
		p.Look()
		if over() {
			spin.Found()
			return
		}
		if spin.Enough() {
			return
		}
	}
}
