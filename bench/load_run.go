package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// run sends until next ends, the time is over or the context is done, and
// then waits for the replies that are still owed. A zero duration is no limit.
func (l *load) run(ctx context.Context, d time.Duration, next func(ids []uint32) int) (loadTotal, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.next, l.total, l.busy = next, loadTotal{}, 0
	l.latency.Reset()
	l.writes.Reset()
	start := time.Now()
	until := start.Add(d)
	now := start
	open := func() bool { return ctx.Err() == nil && (d == 0 || now.Before(until)) }
	for i := range l.conns {
		if err := l.send(&l.conns[i], i, now); err != nil {
			return loadTotal{}, err
		}
	}
	for l.busy > 0 {
		n, err := unix.EpollWait(l.epoll, l.events, int(longestSilence.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return loadTotal{}, fmt.Errorf("wait for replies: %w", err)
		}
		if n == 0 {
			return loadTotal{}, fmt.Errorf("no reply on %d connections for %v", l.busy, longestSilence)
		}
		for _, ev := range l.events[:n] {
			c := &l.conns[ev.Fd]
			if ev.Events&unix.EPOLLOUT != 0 {
				if err := l.flush(c, int(ev.Fd)); err != nil {
					return loadTotal{}, err
				}
			}
			if ev.Events&^unix.EPOLLOUT == 0 {
				continue
			}
			answered, err := l.receive(c)
			if err != nil {
				return loadTotal{}, err
			}
			if !answered {
				continue
			}
			now = time.Now()
			l.count(c, now)
			if open() {
				if err := l.send(c, int(ev.Fd), now); err != nil {
					return loadTotal{}, err
				}
			}
		}
	}
	l.total.Elapsed = time.Since(start)
	return l.total, ctx.Err()
}

// send writes the connection's next pipeline.
func (l *load) send(c *loadConn, index int, now time.Time) error {
	n := l.next(l.ids)
	if n == 0 {
		return nil
	}
	c.ring.patch(c.at, l.ids[:n])
	slots := c.ring.slots[c.at : c.at+n]
	for i := range slots {
		c.pending += slots[i].replies
		if slots[i].writes {
			l.total.Writes++
		}
	}
	c.writes = n == 1 && slots[0].writes
	c.ops, c.sentAt = n, now
	c.unsent = c.ring.bytes[slots[0].from:slots[n-1].to]
	if c.at += l.pipeline; c.at == len(c.ring.slots) {
		c.at = 0
	}
	l.busy++
	return l.flush(c, index)
}

// flush writes what the socket takes, and asks to be told when it takes more.
func (l *load) flush(c *loadConn, index int) error {
	n, err := unix.Write(c.fd, c.unsent)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		n = 0
	case err != nil:
		return fmt.Errorf("send requests: %w", err)
	}
	c.unsent = c.unsent[n:]
	more := len(c.unsent) > 0
	if more == c.watched {
		return nil
	}
	c.watched = more
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(index)}
	if more {
		ev.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, c.fd, &ev)
}

var errHungUp = errors.New("the server closed a connection")

// receive reads what has come and reports whether the whole pipeline is
// answered.
func (l *load) receive(c *loadConn) (bool, error) {
	n, err := unix.Read(c.fd, l.buf)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read replies: %w", err)
	case n == 0:
		return false, errHungUp
	}
	c.pending -= c.replies.feed(l.buf[:n])
	switch {
	case c.replies.fails > 0:
		return false, fmt.Errorf("the server answered: %s", c.replies.first)
	case c.replies.odd || c.pending < 0:
		return false, errors.New("the server sent a reply that nobody asked for")
	}
	return c.pending == 0, nil
}

// count takes an answered pipeline into the totals.
func (l *load) count(c *loadConn, now time.Time) {
	l.latency.Record(int64(now.Sub(c.sentAt)), int64(c.ops))
	if c.writes {
		l.writes.Record(int64(now.Sub(c.sentAt)), 1)
	}
	l.total.Ops += uint64(c.ops)
	l.total.Nulls += c.replies.nulls
	c.replies.nulls = 0
	l.busy--
}
