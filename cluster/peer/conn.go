package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/view"
	link "github.com/ostrodb/ostro/fabric/frame"
)

// Peek reads the first eight bytes of a connection, within a time, and returns
// them with a connection that has them still to be read. If they are Magic,
// the connection belongs to ServeConn.
func Peek(c net.Conn, within time.Duration) (first [8]byte, whole net.Conn, err error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return first, c, err
	}
	if _, err := io.ReadFull(c, first[:]); err != nil {
		return first, c, fmt.Errorf("peer: read what kind of connection it is: %w", err)
	}
	return first, &peeked{c, first[:]}, c.SetReadDeadline(time.Time{})
}

// peeked is a connection whose first bytes were read already.
type peeked struct {
	net.Conn
	first []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.first)
	p.first = p.first[n:]
	return n, nil
}

// NetConn is the connection below.
func (p *peeked) NetConn() net.Conn { return p.Conn }

// tcpOf finds the TCP connection below others, or nil.
func tcpOf(c net.Conn) *net.TCPConn {
	for {
		switch t := c.(type) {
		case *net.TCPConn:
			return t
		case interface{ NetConn() net.Conn }:
			c = t.NetConn()
		default:
			return nil
		}
	}
}

// plainTCP is the TCP connection that bytes go to as they are, or nil.
func plainTCP(c net.Conn) *net.TCPConn {
	if p, ok := c.(*peeked); ok {
		c = p.Conn
	}
	t, _ := c.(*net.TCPConn)
	return t
}

// faithful tells whether a connection brings what was sent, or nothing: it has its own sums, or never leaves this
// machine.
func faithful(c net.Conn) bool {
	for {
		switch t := c.(type) {
		case *tls.Conn:
			return true
		case *net.TCPConn:
			here, ok := t.LocalAddr().(*net.TCPAddr)
			there, too := t.RemoteAddr().(*net.TCPAddr)
			return ok && too && here.IP.Equal(there.IP)
		case interface{ NetConn() net.Conn }:
			c = t.NetConn()
		default:
			return false
		}
	}
}

// How long what was sent may stay unacknowledged by the other machine, or untaken by
// its program, before the connection counts as broken. TCP alone would try for many minutes, and
// would go on pausing for long after a network has healed. Who answers waits longer: the reader
// of a stream may be busy.
const (
	callerPatience = 6 * time.Second
	calleePatience = time.Minute
)

// watch notices soon that the other machine is gone.
func watch(c net.Conn, patience time.Duration) {
	t := tcpOf(c)
	if t == nil {
		return
	}
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3})
	if raw, err := t.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patience.Milliseconds()))
		})
	}
}

// untouched tells whether a connection that nobody uses is still there and
// silent, as it must be.
func untouched(c net.Conn) bool {
	t := tcpOf(c)
	if t == nil {
		return true
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return false
	}
	var one [1]byte
	var silent bool
	err = raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		silent = err == unix.EAGAIN
	})
	return err == nil && silent
}

// interrupt ends what c does when ctx is over. What it returns tells whether
// that has not happened, and sees to it that it will not.
func interrupt(ctx context.Context, c net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

// dial makes a connection to a node and greets it. Nothing was asked of the node
// if it fails.
func (p *Pool) dial(ctx context.Context, to view.NodeID) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.DialTimeout)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	addr, err := p.o.Address(to)
	if err == nil && addr == "" {
		err = fmt.Errorf("its address is not known")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, to, err)
	}
	c, err := p.o.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, to, err)
	}
	watch(c, callerPatience)
	if p.o.TLS != nil {
		c = tls.Client(c, p.tlsFor(addr))
	}
	if err := p.introduce(ctx, c, to); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("%w: %s at %s: %w", ErrUnreachable, to, addr, err)
	}
	return c, nil
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

func (p *Pool) introduce(ctx context.Context, c net.Conn, to view.NodeID) error {
	said, err := json.Marshal(hello{Node: p.o.Node, To: to})
	if err != nil {
		return err
	}
	stop := interrupt(ctx, c)
	if err = link.Introduce(c, Magic, p.o.Secret, said); err == nil {
		err = link.Answered(c)
	}
	if !stop() {
		return ctx.Err()
	}
	return err
}

// tlsFor is the configuration for a host.
func (p *Pool) tlsFor(addr string) *tls.Config {
	c := p.o.TLS.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil && c.ServerName == "" {
		c.ServerName = host
	}
	return c
}
