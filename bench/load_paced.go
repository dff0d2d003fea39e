package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pacedRun sends operations at the moments of a Poisson process, whether the server keeps
// up or not, each on a connection that is free. A latency counts from the moment at
// which its operation was due: who is slow cannot hide it by being asked less.
//
// It ends when the time is over; what is due by then and not sent is counted as late.
func (l *load) pacedRun(ctx context.Context, perSecond float64, d time.Duration, next func(ids []uint32) int) (total loadTotal, late int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer punctual()()
	p := l.newPacer(perSecond)
	l.next, l.total, l.busy = next, loadTotal{}, 0
	l.latency.Reset()
	l.writes.Reset()
	start := time.Now()
	p.due = start
	for until := start.Add(d); ; {
		now := time.Now()
		open := now.Before(until) && ctx.Err() == nil
		if open {
			p.arrive(now)
			if err := l.sendDue(p); err != nil {
				return loadTotal{}, 0, err
			}
		} else if l.busy == 0 {
			break
		}
		if err := l.pacedWait(p, open); err != nil {
			return loadTotal{}, 0, err
		}
	}
	l.total.Elapsed = d
	return l.total, len(p.waiting), ctx.Err()
}

// pacer knows when operations are due, and who is free.
type pacer struct {
	mean    float64 // nanoseconds between two
	due     time.Time
	waiting []time.Time
	idle    []int
}

func (l *load) newPacer(perSecond float64) *pacer {
	p := &pacer{mean: 1e9 / perSecond}
	for i := range l.conns {
		p.idle = append(p.idle, i)
	}
	return p
}

// arrive notes what has become due.
func (p *pacer) arrive(now time.Time) {
	for !p.due.After(now) {
		p.waiting = append(p.waiting, p.due)
		p.due = p.due.Add(time.Duration(rand.ExpFloat64() * p.mean))
	}
}

// sendDue sends what is due as far as connections are free.
func (l *load) sendDue(p *pacer) error {
	n := min(len(p.waiting), len(p.idle))
	for _, due := range p.waiting[:n] {
		i := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if err := l.send(&l.conns[i], i, due); err != nil {
			return err
		}
	}
	p.waiting = append(p.waiting[:0], p.waiting[n:]...)
	return nil
}

// pacedWait takes replies, or returns when the next operation is due and somebody is
// free to send it.
func (l *load) pacedWait(p *pacer, open bool) error {
	timeout := longestSilence
	if open && len(p.idle) > 0 {
		timeout = max(time.Until(p.due), 0)
	}
	n, err := waitNanos(l.epoll, l.events, timeout)
	switch {
	case err == unix.EINTR:
		return nil
	case err != 0:
		return fmt.Errorf("wait for replies: %w", err)
	case n == 0 && timeout == longestSilence:
		return fmt.Errorf("no reply on %d connections for %v", l.busy, longestSilence)
	}
	for _, ev := range l.events[:n] {
		c := &l.conns[ev.Fd]
		if ev.Events&unix.EPOLLOUT != 0 {
			if err := l.flush(c, int(ev.Fd)); err != nil {
				return err
			}
		}
		if ev.Events&^unix.EPOLLOUT == 0 {
			continue
		}
		answered, err := l.receive(c)
		if err != nil {
			return err
		}
		if answered {
			l.count(c, time.Now())
			p.idle = append(p.idle, int(ev.Fd))
		}
	}
	return nil
}

// punctual has the system end this thread's waits when they are over. It would be free
// to end them 50 microseconds later, together with others.
func punctual() (asUsual func()) {
	set := func(nanos uintptr) { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, nanos, 0, 0, 0) }
	set(1)
	return func() { set(0) }
}

// waitNanos waits for events. Go's scheduler hears nothing of it: its monitor would
// take the processor away, and the thread would have to look for another.
func waitNanos(epoll int, events []unix.EpollEvent, d time.Duration) (int, unix.Errno) {
	limit := unix.NsecToTimespec(int64(d))
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(unsafe.Pointer(&limit)), 0, 0)
	if errno != 0 {
		n = 0
	}
	return int(n), errno
}
