package nic

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric/ring"
)

// poller is what an idle engine sleeps on: its own event (commands), an event of
// each session (doorbells), the sockets of links.
type poller struct {
	epoll  int
	event  int
	links  int
	events [64]unix.EpollEvent
	files  map[int32]pollable
}

// pollable is a socket in the loop's care.
type pollable interface {
	ready(e *Engine, events uint32)
}

func (p *poller) open() error {
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("create epoll: %w", err)
	}
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = unix.Close(p.epoll)
		return fmt.Errorf("create eventfd: %w", err)
	}
	p.files = map[int32]pollable{}
	return p.add(p.event, wakes, nil)
}

func (p *poller) close() {
	_ = unix.Close(p.epoll)
	_ = unix.Close(p.event)
}

// add watches a file. One without a pollable is an event: it only wakes, and is
// watched for edges, so that nobody has to read what a program may read as well.
func (p *poller) add(fd int, events uint32, who pollable) error {
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watch a file: %w", err)
	}
	if who != nil {
		p.files[int32(fd)] = who
		p.links++
	}
	return nil
}

func (p *poller) change(fd int, events uint32) {
	_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

func (p *poller) remove(fd int) {
	_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	if _, link := p.files[int32(fd)]; link {
		delete(p.files, int32(fd))
		p.links--
	}
}

// wakes is how events are watched.
const wakes = unix.EPOLLIN | unix.EPOLLET

// wake ends the loop's sleep. Any thread may call it.
func (p *poller) wake() { ring.Signal(p.event) }

// ready waits up to millis (-1 for ever) and serves what is ready.
func (p *poller) ready(e *Engine, millis int) bool {
	n, err := unix.EpollWait(p.epoll, p.events[:], millis)
	if err != nil && !errors.Is(err, unix.EINTR) {
		e.conf.Log.Error("waiting for events failed", "error", err)
	}
	for i := range max(n, 0) {
		fd, events := p.events[i].Fd, p.events[i].Events
		if who, link := p.files[fd]; link {
			who.ready(e, events)
		}
	}
	return n > 0
}

// sleep waits for an event. Programs see the asleep words first, and only then
// the engine looks at their bells once more, so no ring is missed.
func (e *Engine) sleep() {
	silent := true
	for _, s := range e.sessions {
		s.bells.SetAsleep(true)
		silent = silent && s.bells.Silent(s.words)
	}
	if silent && !e.pending.Load() && e.poll.ready(e, e.untilDeadline()) {
		e.lookForOwners() // What came may have handed a request over.
	}
	for _, s := range e.sessions {
		s.bells.SetAsleep(false)
	}
}
