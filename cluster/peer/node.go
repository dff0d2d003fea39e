package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// node is a pool's connections with one node: one that calls share, and some
// that a call has for itself.
type node struct {
	pool    *Pool
	id      view.NodeID
	dialing chan struct{} // holds one token: who takes it makes the shared connection
	readers sync.WaitGroup

	mu     sync.Mutex
	shared *shared
	idle   []net.Conn
	alone  map[net.Conn]struct{}
	closed error // the pool was
}

// idleConns is how many connections are kept for calls of their own.
const idleConns = 4

func newNode(p *Pool, id view.NodeID) *node {
	return &node{pool: p, id: id, dialing: make(chan struct{}, 1), alone: map[net.Conn]struct{}{}}
}

// shared is a connection that carries many calls at a time.
type shared struct {
	node *node
	c    net.Conn
	out  *sender

	heard   atomic.Uint64 // frames that came
	probing atomic.Bool

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]waiter
	err     error // why it ended
}

type waiter struct {
	method string
	done   func(head, bulk []byte, err error)
}

// current is the shared connection, or nil if there is none that works.
func (n *node) current() *shared {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shared != nil && n.shared.ended() != nil {
		n.shared = nil
	}
	return n.shared
}

// connected is the shared connection, made if there is none. Those who come
// meanwhile wait for it.
func (n *node) connected(ctx context.Context) (*shared, error) {
	if s := n.current(); s != nil {
		return s, nil
	}
	select {
	case n.dialing <- struct{}{}:
		defer func() { <-n.dialing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, n.id, ctx.Err())
	}
	if s := n.current(); s != nil {
		return s, nil
	}
	c, err := n.pool.dial(ctx, n.id)
	if err != nil {
		return nil, err
	}
	s := &shared{node: n, c: c, out: newSender(c, callTimeout), waiting: map[uint64]waiter{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed != nil {
		_ = c.Close()
		return nil, n.closed
	}
	n.shared = s
	n.readers.Go(s.read)
	return s, nil
}

// drop ends all connections.
func (n *node) drop(why error) {
	n.mu.Lock()
	if why == ErrClosed {
		n.closed = why
	}
	s, conns := n.shared, n.idle
	n.shared, n.idle = nil, nil
	for c := range n.alone {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	if s != nil {
		s.end(why)
	}
}

// callShared is Call on the shared connection.
func (n *node) callShared(ctx context.Context, f *frame) result {
	s, err := n.connected(ctx)
	if err != nil {
		return result{err: err}
	}
	got := make(chan result, 1)
	if err := s.start(f, func(head, bulk []byte, err error) { got <- result{head, bulk, err} }); err != nil {
		return result{err: err}
	}
	select {
	case r := <-got:
		return r
	case <-ctx.Done():
		s.forget(f.call)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.probe()
		}
		return result{err: fmt.Errorf("peer: node %s: %s: %w", n.id, f.method, ctx.Err())}
	}
}

// pingTimeout is how long a peer that does not answer a call may take for a ping.
const pingTimeout = 3 * time.Second

// probe finds out whether the peer is slow or out of reach. In the latter case it ends the connection:
// a new one works as soon as the network does, and this one only long after.
func (s *shared) probe() {
	if s.probing.Swap(true) {
		return
	}
	before := s.heard.Load()
	if s.start(&frame{kind: kindRequest, method: methodPing}, func(_, _ []byte, _ error) {}) != nil {
		return
	}
	time.AfterFunc(pingTimeout, func() {
		s.probing.Store(false)
		if s.heard.Load() == before {
			s.end(fmt.Errorf("%w: the node is silent", ErrLost))
		}
	})
}

// start is Go.
func (n *node) start(f *frame, done func(head, bulk []byte, err error)) error {
	s := n.current()
	if s == nil {
		return fmt.Errorf("%w: %s: there is no connection", ErrUnreachable, n.id)
	}
	return s.start(f, done)
}

// start sends a request. Without an error, done will be called.
func (s *shared) start(f *frame, done func(head, bulk []byte, err error)) error {
	if err := f.check(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return fmt.Errorf("%w: %s: %w", ErrUnreachable, s.node.id, s.err)
	}
	s.last++
	f.call = s.last
	s.waiting[f.call] = waiter{f.method, done}
	s.mu.Unlock()
	// A failure ends the connection, and with it this call like all others.
	_ = s.out.send(f)
	return nil
}

// forget stops waiting for an answer, and says so.
func (s *shared) forget(call uint64) {
	s.mu.Lock()
	_, waits := s.waiting[call]
	delete(s.waiting, call)
	s.mu.Unlock()
	if waits {
		_ = s.out.send(&frame{kind: kindCancel, call: call})
	}
}

func (s *shared) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end closes the connection. All who wait hear why.
func (s *shared) end(why error) {
	_ = s.c.Close()
	s.mu.Lock()
	if s.err == nil {
		s.err = why
	}
	waiting, why := s.waiting, s.err
	s.waiting = map[uint64]waiter{}
	s.mu.Unlock()
	for _, w := range waiting {
		w.done(nil, nil, fmt.Errorf("node %s: %s: %w", s.node.id, w.method, why))
	}
}

// read hands answers to those who wait for them.
func (s *shared) read() {
	in := bufio.NewReaderSize(s.c, readBytes)
	for {
		var f frame
		_, err := f.read(in, nil)
		if err == nil && f.kind != kindAnswer && f.kind != kindError {
			err = fmt.Errorf("%w: no answer to a call", ErrMalformed)
		}
		if err != nil {
			s.end(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
		s.heard.Add(1)
		s.mu.Lock()
		w, ok := s.waiting[f.call]
		delete(s.waiting, f.call)
		s.mu.Unlock()
		if ok {
			r := s.node.resultOf(w.method, &f)
			w.done(r.head, r.bulk, r.err)
		}
	}
}

// resultOf reads the last frame of a call.
func (n *node) resultOf(method string, f *frame) result {
	if f.kind == kindAnswer {
		return result{head: f.head, bulk: f.bulk}
	}
	e := &Error{Node: string(n.id), Method: method}
	if err := json.Unmarshal(f.head, e); err != nil {
		return result{err: fmt.Errorf("node %s: %s: %w: %w", n.id, method, ErrMalformed, err)}
	}
	return result{err: e}
}
