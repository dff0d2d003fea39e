package nic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/frame"
)

// A stranger gets this long to prove that it knows the secret, and so many may
// try at a time.
const (
	greetTimeout = 5 * time.Second
	strangers    = 256
	acceptPause  = 50 * time.Millisecond
)

// Switchboard connects an engine with those of other machines: it takes their
// calls, and lets the engine call them.
type Switchboard struct {
	engine   *Engine
	secret   []byte
	listener *net.TCPListener
	wait     sync.WaitGroup
	slots    chan struct{}

	mu     sync.Mutex
	closed bool
	talks  map[net.Conn]struct{} // handshakes under way
	calls  context.Context       // ends with the switchboard
	end    context.CancelFunc
}

// Listen opens a switchboard. The address that peers are told is advertise, or
// where it listens. All NICs that shall talk to each other share a secret.
func (e *Engine) Listen(addr, advertise string, secret []byte) (*Switchboard, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("nic: listen on %s: %w", addr, err)
	}
	s := &Switchboard{
		engine: e, secret: secret, listener: l.(*net.TCPListener),
		slots: make(chan struct{}, strangers), talks: map[net.Conn]struct{}{},
	}
	s.calls, s.end = context.WithCancel(context.Background())
	if advertise == "" {
		advertise = l.Addr().String()
	}
	if err := e.do(func() { e.addr, e.board = advertise, s }); err != nil {
		_ = l.Close()
		return nil, err
	}
	s.wait.Go(s.accept)
	return s, nil
}

// Listens tells whether the engine reaches other machines.
func (e *Engine) Listens() bool {
	listens := false
	_ = e.do(func() { listens = e.board != nil })
	return listens
}

// Addr is where the switchboard listens.
func (s *Switchboard) Addr() string { return s.listener.Addr().String() }

// Close takes no more calls. Connections that stand stay.
func (s *Switchboard) Close() error {
	_ = s.engine.do(func() { s.engine.board = nil })
	s.end()
	s.mu.Lock()
	s.closed = true
	for c := range s.talks {
		_ = c.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.wait.Wait()
	return err
}

// track remembers a handshake, so that Close can end it.
func (s *Switchboard) track(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return false
	}
	s.talks[c] = struct{}{}
	return true
}

func (s *Switchboard) untrack(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.talks, c)
}

func (s *Switchboard) accept() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.engine.conf.Log.Error("a peer could not connect", "error", err)
			time.Sleep(acceptPause) // The system has no room for it.
			continue
		}
		select {
		case s.slots <- struct{}{}:
		default:
			_ = c.Close() // So many strangers at once are no peers.
			continue
		}
		if s.track(c) {
			s.wait.Go(func() { s.greet(c) })
		} else {
			<-s.slots
		}
	}
}

// greet makes sure of a caller and passes it to the queue pair it asks for.
func (s *Switchboard) greet(c net.Conn) {
	defer func() { <-s.slots }()
	_ = c.SetDeadline(time.Now().Add(greetTimeout))
	h, err := frame.Listen(c, s.secret)
	s.untrack(c)
	if err != nil {
		s.engine.stranger(c, err)
		return
	}
	_ = c.SetDeadline(time.Time{})
	k := &knock{conn: c, hello: h}
	if err := s.engine.do(func() { s.engine.knocked(k) }); err != nil {
		_ = c.Close()
	}
}

// stranger counts a caller that was not let in, and then hangs up: who sees
// the end finds it counted.
func (e *Engine) stranger(c net.Conn, err error) {
	defer c.Close()
	_ = e.do(func() {
		switch {
		case errors.Is(err, frame.ErrUnauthorized):
			e.totals.Unauthorized++
			e.conf.Log.Warn("a peer without the secret was refused", "addr", c.RemoteAddr().String())
		case errors.Is(err, frame.ErrMalformed):
			e.totals.Malformed++
		}
	})
}

// knock is an authenticated caller at the door of a queue pair.
type knock struct {
	conn  net.Conn
	hello frame.Hello
}

func (k *knock) refuse(why string) {
	conn := k.conn
	go func() { // Not in the loop: the peer may be slow.
		_ = conn.SetDeadline(time.Now().Add(greetTimeout))
		frame.Refuse(conn, why)
		_ = conn.Close()
	}()
}

// knocked lets a caller in if its queue pair has named it, or lets it wait for that.
func (e *Engine) knocked(k *knock) {
	q := e.qp(k.hello.To)
	switch {
	case q == nil || q.token != k.hello.Token || q.state >= fabric.Failed || q.callee != nil || q.knocks != nil:
		e.totals.RefusedPeer++
		k.refuse("no such queue pair, or it has a peer")
	case q.session.banned[k.hello.From.Peer]:
		q.session.metrics.RefusedPeer++
		k.refuse("banned")
	case !q.wants:
		q.knocks = k
	case !same(q.want, k.hello.From):
		q.session.metrics.RefusedPeer++
		k.refuse("another peer is expected")
	default:
		e.letIn(q, k)
	}
}

func same(a, b fabric.Endpoint) bool { return a.NIC == b.NIC && a.QP == b.QP && a.Token == b.Token }

// letIn gives a caller's stream to the loop.
func (e *Engine) letIn(q *qp, k *knock) {
	q.knocks = nil
	err := frame.Accept(k.conn) // One byte into an empty socket.
	var fd int
	if err == nil {
		fd, err = takeOver(k.conn)
	}
	if err == nil {
		q.callee = newCallee(fd, q, k.hello.RNRWait)
		err = e.poll.add(fd, unix.EPOLLIN, q.callee)
	}
	if err != nil {
		e.conf.Log.Warn("a peer was lost while it connected", "peer", k.hello.From.Peer, "error", err)
		e.fail(q, fabric.PeerLost)
		return
	}
	e.bothWays(q)
}

// takeOver takes the socket out of Go's hands.
func takeOver(c net.Conn) (int, error) {
	defer c.Close()
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0, os.ErrInvalid
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	fd := -1
	var dup error
	if err := raw.Control(func(old uintptr) { fd, dup = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return 0, err
	}
	return fd, dup // Go keeps sockets non-blocking, without delay.
}

// bothWays makes a queue pair ready when it can call and be called.
func (e *Engine) bothWays(q *qp) {
	if q.state == fabric.Fresh && q.link != nil && q.callee != nil {
		q.setState(fabric.Ready)
		e.enqueue(q)
	}
}

// dial calls the peer that a queue pair wants. It runs in the loop and only
// starts the attempt.
func (e *Engine) dial(q *qp) error {
	if e.board == nil || q.want.Addr == "" {
		return fmt.Errorf("nic: the peer %q is on another machine, and this NIC listens on no address; open it with one", q.want.Peer)
	}
	if k := q.knocks; k != nil {
		e.knockedEarly(q, k)
	}
	ctx, cancel := context.WithCancel(e.board.calls)
	q.dialing = cancel
	h := frame.Hello{From: q.endpoint(e.addr), To: q.want.QP, Token: q.want.Token, RNRWait: q.rnrWait}
	board, addr := e.board, q.want.Addr
	board.wait.Go(func() {
		defer cancel()
		fd, err := board.call(ctx, addr, h)
		if e.do(func() { e.called(q, fd, err) }) != nil && err == nil {
			_ = unix.Close(fd)
		}
	})
	return nil
}

func (e *Engine) knockedEarly(q *qp, k *knock) {
	q.knocks = nil
	if !same(q.want, k.hello.From) {
		q.session.metrics.RefusedPeer++
		k.refuse("another peer is expected")
		return
	}
	e.letIn(q, k)
}

// call connects, proves and waits to be let in.
func (s *Switchboard) call(ctx context.Context, addr string, h frame.Hello) (int, error) {
	d := net.Dialer{Timeout: greetTimeout}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	if !s.track(c) {
		return 0, fabric.ErrClosed
	}
	defer s.untrack(c)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(greetTimeout))
	if err := frame.Call(c, s.secret, h); err != nil {
		_ = c.Close()
		return 0, err
	}
	_ = c.SetDeadline(time.Time{}) // The peer may take its time to name us.
	if err := frame.Answered(c); err != nil {
		_ = c.Close()
		return 0, err
	}
	return takeOver(c)
}

// called gives the stream of a call that was answered to the loop.
func (e *Engine) called(q *qp, fd int, err error) {
	if err == nil && q.state == fabric.Fresh {
		c := newCaller(fd, q)
		if err = e.poll.add(fd, unix.EPOLLIN, c); err == nil {
			q.link = c
			e.bothWays(q)
			return
		}
	}
	if err == nil {
		_ = unix.Close(fd) // The queue pair has failed meanwhile.
		return
	}
	if q.state == fabric.Fresh {
		e.conf.Log.Warn("a peer could not be reached", "peer", q.want.Peer, "addr", q.want.Addr, "error", err)
	}
	e.fail(q, fabric.PeerLost)
}

// hangUp ends all conversations of a queue pair.
func (e *Engine) hangUp(q *qp, l link) {
	if q.dialing != nil {
		q.dialing()
	}
	if q.knocks != nil {
		q.knocks.refuse("closed")
		q.knocks = nil
	}
	if c := q.callee; c != nil {
		c.detach(e)
		c.stream.close(&e.poll)
	}
	if l != nil {
		l.close(e)
	}
}
