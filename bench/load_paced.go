package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

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
	p, err := l.newPacer(perSecond)
	if err != nil {
		return loadTotal{}, 0, err
	}
	defer p.close()
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
	timer   int // wakes epoll in time
}

func (l *load) newPacer(perSecond float64) (*pacer, error) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create a timer: %w", err)
	}
	p := &pacer{mean: 1e9 / perSecond, timer: timer}
	for i := range l.conns {
		p.idle = append(p.idle, i)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: timerEvent}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, timer, &ev); err != nil {
		p.close()
		return nil, fmt.Errorf("watch a timer: %w", err)
	}
	return p, nil
}

// timerEvent is no connection's number.
const timerEvent = -1

func (p *pacer) close() { unix.Close(p.timer) } // Which takes it from epoll, too.

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

// pacedWait takes replies, or returns when the next operation is due.
func (l *load) pacedWait(p *pacer, open bool) error {
	timeout := int(longestSilence.Milliseconds())
	if open {
		left := max(time.Until(p.due), time.Nanosecond)
		at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
		if err := unix.TimerfdSettime(p.timer, 0, &at, nil); err != nil {
			return fmt.Errorf("set a timer: %w", err)
		}
	}
	n, err := unix.EpollWait(l.epoll, l.events, timeout)
	switch {
	case err == unix.EINTR:
		return nil
	case err != nil:
		return fmt.Errorf("wait for replies: %w", err)
	case n == 0:
		return fmt.Errorf("no reply on %d connections for %v", l.busy, longestSilence)
	}
	for _, ev := range l.events[:n] {
		if ev.Fd == timerEvent {
			var expirations [8]byte
			_, _ = unix.Read(p.timer, expirations[:]) // Or it would wake us again.
			continue
		}
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
