package redis

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readable = uint32(unix.EPOLLIN)
	writable = uint32(unix.EPOLLOUT)
	hungUp   = uint32(unix.EPOLLHUP | unix.EPOLLERR)
)

// poller waits for sockets (epoll, level-triggered) and for wake, which any
// goroutine may call. Everything else belongs to one loop.
type poller struct {
	epoll  int
	events []unix.EpollEvent
	woken  atomic.Bool

	mu     sync.Mutex // guards event against a wake after close
	event  int        // eventfd; wake writes to it
	closed bool
}

func (p *poller) open(maxEvents int) error {
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = unix.Close(p.epoll)
		return err
	}
	p.events = make([]unix.EpollEvent, maxEvents)
	return p.add(p.event, readable)
}

// close gives the descriptors back. Wakes that come later do nothing.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	_ = unix.Close(p.epoll)
	_ = unix.Close(p.event)
}

func (p *poller) add(fd int, interest uint32) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: interest, Fd: int32(fd)})
}

func (p *poller) modify(fd int, interest uint32) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: interest, Fd: int32(fd)})
}

func (p *poller) remove(fd int) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil)
}

// napMillis is how long a wait keeps its processor before it gives it back.
const napMillis = 1

// poll returns the events that are there already.
func (p *poller) poll() []unix.EpollEvent {
	events, _ := p.waitRaw(0)
	return events
}

// wait blocks until there are events or the time is over; negative: no limit.
//
// A loop with work to do waits some microseconds. To tell the Go scheduler of
// each such wait costs more than that: its monitor thread stays awake, takes
// the processor away after 20 microseconds, and the loop has to look for another.
// So the first millisecond is slept without a word. The collector does not
// wait for it, for its signal interrupts the sleep.
func (p *poller) wait(millis int) []unix.EpollEvent {
	if events, over := p.waitRaw(napMillis); !over {
		return events
	}
	n, _, errno := syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(millis), 0, 0)
	if errno != 0 {
		return nil // EINTR: a signal of the Go runtime
	}
	return p.events[:n]
}

// waitRaw waits without telling the scheduler; over if nothing came in time.
func (p *poller) waitRaw(millis int) (events []unix.EpollEvent, over bool) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(millis), 0, 0)
	if errno != 0 {
		return nil, false // EINTR
	}
	return p.events[:n], n == 0
}

// wake makes the loop's current or next wait return.
func (p *poller) wake() {
	if p.woken.Swap(true) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(p.event, one[:]) // It cannot fail short of 2^64 wakes.
	}
}

// drained must be called before the loop looks for what it was woken for.
func (p *poller) drained() {
	var count [8]byte
	_, _ = unix.Read(p.event, count[:])
	p.woken.Store(false)
}

// receive reads what is there, without blocking.
func receive(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// send writes what the socket takes, without blocking.
func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
