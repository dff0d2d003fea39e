package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/wire"
)

// run carries out an order, and waits for what it has begun, except for what never ends.
func (f *fleet) run(ctx context.Context, o order) (fleetTotal, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if o.perSecond > 0 {
		defer punctual()()
	}
	f.prepare(&o)
	start := time.Now()
	d := dues{f: f, next: start, mean: 1e9 * float64(o.batch) / o.perSecond}
	for more := true; ; {
		now := time.Now()
		if more = more && ctx.Err() == nil && (o.duration == 0 || now.Sub(start) < o.duration); more {
			var err error
			if more, err = f.fill(&d, now); err != nil {
				return fleetTotal{}, err
			}
		}
		if !more && len(f.idle) == len(f.errands) {
			break
		}
		if err := f.wait(&d, more); err != nil {
			return fleetTotal{}, err
		}
	}
	f.total.Elapsed = time.Since(start)
	f.total.Late = len(d.waiting) * o.batch
	return f.total, ctx.Err()
}

func (f *fleet) prepare(o *order) {
	f.o, f.total = o, fleetTotal{}
	f.latency.Reset()
	f.errands, f.idle = make([]errand, o.window), nil
	for i := range f.errands {
		f.errands[i].chores = make([]chore, o.batch)
		f.idle = append(f.idle, i)
	}
}

// dues are the moments at which errands are to begin.
type dues struct {
	f       *fleet
	mean    float64 // nanoseconds between two; +Inf: whenever there is room
	next    time.Time
	waiting []time.Time
	done    uint64 // operations that were begun
}

// fill begins what is due, as far as there is room.
func (f *fleet) fill(d *dues, now time.Time) (more bool, err error) {
	paced := f.o.perSecond > 0
	for ; paced && !d.next.After(now); d.next = d.next.Add(time.Duration(rand.ExpFloat64() * d.mean)) {
		d.waiting = append(d.waiting, d.next)
	}
	used := 0
	for len(f.idle) > 0 && (!paced || used < len(d.waiting)) {
		tenant := f.o.tenant()
		if tenant < 0 {
			return false, nil
		}
		due := now
		if paced {
			due = d.waiting[used]
			used++
		}
		if err := f.begin(tenant, due); err != nil {
			return false, err
		}
		if err := f.misbehave(d); err != nil {
			return false, err
		}
	}
	d.waiting = append(d.waiting[:0], d.waiting[used:]...)
	return true, nil
}

// misbehave does what is bad when it is time for that: first at once, so that every round with it has some.
func (f *fleet) misbehave(d *dues) error {
	before := d.done
	d.done += uint64(f.o.batch)
	every := uint64(f.o.every)
	if every == 0 || before > 0 && before/every == d.done/every {
		return nil
	}
	return f.o.deed(f)
}

// call begins a function of the last sessions, in turns, for whose end nobody waits.
func (f *fleet) call(fn []byte) error {
	conn := len(f.conns) - 1 - f.total.Begun%f.o.bad
	start := f.open(conn)
	f.out = wire.AppendOp(f.out, &wire.Op{Code: wire.OpInvoke, Tag: badTag, Key: []byte("k"), Arg: fn}, 0)
	f.out = wire.EndBatch(f.out, start, 1)
	f.total.Begun++
	f.owed++
	return f.send(conn)
}

// wait takes answers, or returns when the next errand is due and there is room for it.
func (f *fleet) wait(d *dues, more bool) error {
	n, err := f.poll(d, more)
	if err != nil {
		return err
	}
	return f.take(n)
}

// take handles the first n events.
func (f *fleet) take(n int) error {
	for _, ev := range f.events[:n] {
		if ev.Events&unix.EPOLLOUT != 0 {
			if err := f.flush(int(ev.Fd)); err != nil {
				return err
			}
		}
		if ev.Events&^unix.EPOLLOUT == 0 {
			continue
		}
		if err := f.receive(int(ev.Fd)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) poll(d *dues, more bool) (n int, err error) {
	timeout := longestSilence
	if f.o.perSecond > 0 && more && len(f.idle) > 0 {
		var errno unix.Errno
		timeout = max(time.Until(d.next), 0)
		n, errno = waitNanos(f.epoll, f.events, timeout)
		if errno != 0 {
			err = errno
		}
	} else if n, err = unix.EpollWait(f.epoll, f.events, int(timeout.Milliseconds())); err == nil && n == 0 {
		return 0, fmt.Errorf("no answer to %d batches for %v", len(f.errands)-len(f.idle), longestSilence)
	}
	if err == unix.EINTR {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("wait for answers: %w", err)
	}
	return n, nil
}

// drainWithin is how long a server may take to end what never ends.
const drainWithin = 30 * time.Second

// drain waits until the server has ended what never ends by itself.
func (f *fleet) drain(ctx context.Context) error {
	for began := time.Now(); f.owed > 0; {
		if time.Since(began) > drainWithin {
			return fmt.Errorf("%d functions that never end were not ended within %v", f.owed, drainWithin)
		}
		n, err := unix.EpollWait(f.epoll, f.events, int(drainPoll.Milliseconds()))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && err != unix.EINTR:
			return fmt.Errorf("wait for answers: %w", err)
		}
		if err := f.take(max(n, 0)); err != nil {
			return err
		}
	}
	return nil
}

// drainPoll is how often drain looks at the time.
const drainPoll = 100 * time.Millisecond
