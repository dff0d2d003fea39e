package bench

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/bench/workload"
)

// load is a closed loop of clients: each connection sends a pipeline of RESP
// commands, or a native batch, waits for all replies, sends the next. One thread drives all
// connections through epoll, with one buffer to read into and requests that
// are built before, so that on a machine shared with the server the server is
// what is measured.
//
// A load belongs to one goroutine.
type load struct {
	epoll    int
	conns    []loadConn
	events   []unix.EpollEvent
	buf      []byte
	pipeline int
	latency  *workload.Latency
	writes   *workload.Latency // of writes that were sent alone

	next  func(ids []uint32) int // fills ids, returns how many; fewer than asked is the end
	ids   []uint32
	busy  int // connections with replies outstanding
	total loadTotal
}

// loadTotal is what came of a run.
type loadTotal struct {
	Ops     uint64
	Writes  uint64
	Nulls   uint64
	Elapsed time.Duration
}

// loadConn is one connection. While pending is above zero the server owes
// replies to the slots before at.
type loadConn struct {
	fd      int
	ring    *requests
	at      int  // slot to send next
	writes  bool // what is outstanding is one write
	ops     int  // operations outstanding
	pending int  // replies outstanding
	unsent  []byte
	watched bool // epoll tells when the socket takes more
	sentAt  time.Time
	replies replies
}

const (
	loadBuffer = 256 << 10
	// longestSilence is how long a server may leave all connections without
	// a reply before the run is given up.
	longestSilence = 60 * time.Second
)

// door is a server, and the hash tag of the keys that it serves; without one it
// serves all. What goes through a native one is made by newBatches.
type door struct {
	addr, tag string
	native    bool
	as        fleetMember // who logs in; nobody: without
}

// dial opens a connection through the door, with requests of its own.
func (d door) dial(ring *requests) (int, *requests, error) {
	if d.native {
		return dialNative(d.addr, ring)
	}
	if d.as.name != "" {
		c, err := dialAs(d.addr, d.as)
		if err != nil {
			return -1, nil, err
		}
		fd, err := takeFD(c.conn)
		return fd, ring.copy(), err
	}
	fd, err := dialFD(d.addr)
	return fd, ring.copyWithTag(d.tag), err
}

// dialLoad opens clients connections to a server.
func dialLoad(addr string, clients, pipeline int, ring *requests) (*load, error) {
	return dialDoors([]door{{addr: addr}}, clients, pipeline, ring)
}

// dialDoors opens clients connections to several servers in turn.
func dialDoors(doors []door, clients, pipeline int, ring *requests) (*load, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll instance: %w", err)
	}
	l := &load{
		epoll: epoll, pipeline: pipeline,
		events: make([]unix.EpollEvent, clients), buf: make([]byte, loadBuffer),
		ids: make([]uint32, pipeline), latency: workload.NewLatency(), writes: workload.NewLatency(),
	}
	for i := range clients {
		d := doors[i%len(doors)]
		fd, own, err := d.dial(ring)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("connect client %d to %s: %w", i+1, d.addr, err)
		}
		// Connections start at different places of the ring, so that they do
		// not all write at once when the mix has few writes.
		at := i * len(ring.slots) / clients / pipeline * pipeline
		l.conns = append(l.conns, loadConn{fd: fd, ring: own, at: at, replies: replies{frames: d.native}})
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			l.close()
			return nil, fmt.Errorf("watch client %d: %w", i+1, err)
		}
	}
	return l, nil
}

func (l *load) close() {
	for i := range l.conns {
		unix.Close(l.conns[i].fd)
	}
	unix.Close(l.epoll)
}

// dialFD connects and takes the socket away from Go's own poller.
func dialFD(addr string) (int, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return -1, err
	}
	return takeFD(c)
}

func takeFD(c net.Conn) (int, error) {
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return -1, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, unix.SetNonblock(fd, true)
}
