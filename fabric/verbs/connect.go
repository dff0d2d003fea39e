//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/frame"
)

const greetTimeout = 5 * time.Second

// knock is an authenticated caller that the queue pair has not named yet.
type knock struct {
	conn net.Conn
	from fabric.Endpoint
}

// Connect names the peer. The hardware is ready to be written to at once: that is
// only where the peer was told the keys.
func (q *QP) Connect(peer fabric.Endpoint) error {
	leave, err := q.enter()
	if err != nil {
		return err
	}
	defer leave()
	d := q.domain.device
	switch {
	case q.wants || q.state != fabric.Fresh:
		return fmt.Errorf("verbs: queue pair %d is connected already, or broken", q.endpoint.QP)
	case d.banned[peer.Peer]:
		d.metrics.RefusedPeer++
		return fmt.Errorf("verbs: connect to %q: %w", peer.Peer, fabric.ErrBanned)
	}
	q.want, q.wants = peer, true
	if err := q.start(); err != nil {
		q.fail(fabric.PeerLost)
		return err
	}
	if same(peer, q.endpoint) {
		q.state = fabric.Ready
		q.pump()
		return nil
	}
	if k := q.knocks; k != nil {
		q.knocks = nil
		q.answer(k)
	}
	ctx, cancel := context.WithCancel(context.Background())
	q.dialing = cancel
	d.wait.Go(func() { q.call(ctx) })
	return nil
}

func same(a, b fabric.Endpoint) bool { return a.NIC == b.NIC && a.QP == b.QP && a.Token == b.Token }

// start lets the hardware talk to the peer's.
func (q *QP) start() error {
	const psnBits = 1<<24 - 1
	d, gid := q.domain.device, q.want.NIC
	retry := C.int(3)
	if q.forEver {
		retry = 7
	}
	err := failed("connect", C.to_rtr(q.qp, d.mtu, C.uint32_t(q.want.QP), C.uint32_t(q.want.Token&psnBits), unsafe.Pointer(&gid), d.gidIndex))
	if err == nil {
		err = failed("connect", C.to_rts(q.qp, C.uint32_t(q.endpoint.Token&psnBits), retry))
	}
	return err
}

// call connects to the peer and stays until either side ends.
func (q *QP) call(ctx context.Context) {
	d := q.domain.device
	conn, err := q.dial(ctx)
	d.mu.Lock()
	if err != nil || q.state != fabric.Fresh {
		q.fail(fabric.PeerLost)
		d.mu.Unlock()
		if conn != nil {
			_ = conn.Close()
		}
		return
	}
	q.calls = conn
	q.bothWays()
	d.mu.Unlock()
	q.watch(conn)
}

func (q *QP) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: greetTimeout}
	c, err := dialer.DialContext(ctx, "tcp", q.want.Addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(greetTimeout))
	err = frame.Call(c, q.domain.device.conf.Secret, frame.Hello{From: q.endpoint, To: q.want.QP, Token: q.want.Token})
	if err == nil {
		_ = c.SetDeadline(time.Time{})
		err = frame.Answered(c)
	}
	return c, err
}

// watch waits for the other side to hang up.
func (q *QP) watch(c net.Conn) {
	_, _ = c.Read(make([]byte, 1))
	d := q.domain.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && q.state < fabric.Failed {
		q.send.drain() // What the hardware knows of the end comes first.
		q.fail(fabric.PeerLost)
	}
}

// bothWays makes the queue pair ready when each side has named the other.
func (q *QP) bothWays() {
	if q.state == fabric.Fresh && q.calls != nil && q.called != nil {
		q.state = fabric.Ready
		q.pump()
	}
}

// Ready waits until the connection is there.
func (q *QP) Ready(ctx context.Context) error {
	for {
		if over, err := q.State().Settled(); over {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// hangUp closes the TCP connections.
func (q *QP) hangUp() {
	if q.dialing != nil {
		q.dialing()
	}
	for _, c := range []net.Conn{q.calls, q.called} {
		if c != nil {
			_ = c.Close()
		}
	}
	if q.knocks != nil {
		_ = q.knocks.conn.Close()
	}
}

// addr is where peers call: at the device's own address if it listens on all.
func (d *Device) addr() string {
	at := d.listener.Addr().(*net.TCPAddr)
	if !at.IP.IsUnspecified() {
		return at.String()
	}
	return (&net.TCPAddr{IP: net.IP(d.gid[:]), Port: at.Port}).String()
}

func (d *Device) accept() {
	for {
		c, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			d.wait.Go(func() { d.greet(c) })
		}
	}
}

// greet makes sure of a caller and passes it to the queue pair it asks for.
func (d *Device) greet(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(greetTimeout))
	h, err := frame.Listen(c, d.conf.Secret)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || d.closed {
		if errors.Is(err, frame.ErrUnauthorized) {
			d.metrics.Unauthorized++
		}
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	q := d.qps[h.To]
	if q == nil || q.endpoint.Token != h.Token || q.state >= fabric.Failed || q.called != nil || q.knocks != nil || d.banned[h.From.Peer] {
		d.metrics.RefusedPeer++
		frame.Refuse(c, "no such queue pair, or it has a peer, or you are banned")
		_ = c.Close()
		return
	}
	k := &knock{c, h.From}
	if !q.wants {
		q.knocks = k
		return
	}
	q.answer(k)
}

// answer lets a caller in if it is the one that was named.
func (q *QP) answer(k *knock) {
	if !same(q.want, k.from) {
		q.domain.device.metrics.RefusedPeer++
		frame.Refuse(k.conn, "another peer is expected")
		_ = k.conn.Close()
		return
	}
	if frame.Accept(k.conn) != nil {
		q.fail(fabric.PeerLost)
		return
	}
	q.called = k.conn
	q.domain.device.wait.Go(func() { q.watch(k.conn) })
	q.bothWays()
}
