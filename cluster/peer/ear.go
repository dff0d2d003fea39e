package peer

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/internal/background"
)

// ear reads a connection. Once it is awake who reads waits for what comes in the kernel, on its thread, for a while each time, and only
// then as goroutines do, if the process lets it: see Listen.
//
// The Go scheduler looks at the network when somebody has nothing else to do. Whoever looked, and found something for a goroutine
// that has a thread of its own, gives its processor to that thread, and nobody looks any more until another has nothing to do: while
// processors are with threads that compute, or are in the kernel, that takes until the scheduler's own round, ten milliseconds.
// What clients wait for waited as long, with cores idle. Who listens is woken by the packet itself, and that costs less than to have a
// thread found for it.
//
// It belongs to one goroutine.
type ear struct {
	c     net.Conn
	raw   syscall.RawConn // nil: it cannot be listened to
	awake bool

	// Of one Read.
	into  []byte
	tries int
	n     int
	err   error
	take  func(fd uintptr) bool
}

func newEar(c net.Conn) *ear {
	e := &ear{c: c}
	if t := plainTCP(c); t != nil {
		if raw, err := t.SyscallConn(); err == nil {
			e.raw, e.take = raw, e.receive
		}
	}
	return e
}

// awakeAt is an ear for who waits for an answer.
func awakeAt(c net.Conn) *ear {
	e := newEar(c)
	e.awake = true
	return e
}

// Read is the connection's. Its deadlines count from when nobody listens any more.
func (e *ear) Read(b []byte) (int, error) {
	if !e.awake || e.raw == nil || len(b) == 0 {
		return e.c.Read(b)
	}
	e.into, e.tries = b, 0
	err := e.raw.Read(e.take)
	e.into = nil
	switch {
	case err != nil:
		return 0, err
	case e.err != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: e.c.LocalAddr(), Addr: e.c.RemoteAddr(), Err: os.NewSyscallError("read", e.err)}
	case e.n == 0:
		return 0, io.EOF
	}
	return e.n, nil
}

// receive reads what is there, or comes soon; false if that is nothing. Who was woken by the Go scheduler in between has perhaps what others wait for.
func (e *ear) receive(fd uintptr) bool {
	if e.tries++; e.tries > 1 {
		background.Relieve()
	}
	for listened := false; ; listened = true {
		if e.n, e.err = readSome(int(fd), e.into); e.err != unix.EAGAIN {
			return true
		}
		if listened || !listen(int32(fd)) {
			return false
		}
	}
}

// readSome is by package syscall's Read, as net's is: to the race detector what was sent happened before what was received.
func readSome(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, b)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Listen lets so many goroutines of this process listen at a time; without it none does. Each keeps a processor of the Go scheduler
// for some of that, so there are to be more than others need.
func Listen(n int) { mayListen.Store(int32(n)) }

// listenMillis is for how long somebody listens at the most. To close a connection takes as long.
const listenMillis = 20

var mayListen, listeners atomic.Int32

// listen waits for something to read; false if there is nothing yet, or too many listen.
func listen(fd int32) bool {
	defer listeners.Add(-1)
	if listeners.Add(1) > mayListen.Load() {
		return false
	}
	n, _ := unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLIN}}, listenMillis)
	return n > 0
}
