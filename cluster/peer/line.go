package peer

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/ostrodb/ostro/cluster/view"
)

// Line is calls to one node, one at a time, on a connection that they have for themselves: nothing that
// others send delays them, and a method that is handled in order is answered by one goroutine of
// the callee's from the first call to the last. It connects when it is first used, and again
// after a call that failed. It is for one goroutine at a time, but for Close.
type Line struct {
	node *node

	mu     sync.Mutex
	c      net.Conn
	closed bool

	in     *bufio.Reader // of an ear that is awake
	plain  bool          // bulks need no sums
	front  []byte
	memory []byte
	last   uint64
	under  []underWay // calls of Send, oldest first
	queued int        // of those, which are in front and have not left
}

// Line makes a line to a node. The caller closes it.
func (p *Pool) Line(to view.NodeID) (*Line, error) {
	n, err := p.node(to)
	if err != nil {
		return nil, err
	}
	return &Line{node: n}, nil
}

// Connect connects, if the line has no connection: so that the first call need not wait for one.
func (l *Line) Connect(ctx context.Context) error {
	_, err := l.connected(ctx)
	return err
}

// Call is Pool.Call. The bulk that it returns is valid until the next call.
func (l *Line) Call(ctx context.Context, method string, head any, bulk []byte, answer any) ([]byte, error) {
	l.last++
	f := frame{kind: kindRequest, call: l.last, method: method, bulk: bulk, millis: millis(ctx)}
	var err error
	if f.head, err = encodeHead(head); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	c, err := l.connected(ctx)
	if err != nil {
		return nil, err
	}
	r, err := l.exchange(ctx, c, &f)
	if err != nil {
		l.hangUp()
		return nil, l.lost(ctx, method, err)
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.bulk, decodeHead(r.head, answer)
}

// sendTogether is how many calls of Send leave with one system call at the most.
const sendTogether = 8

// Send is the first half of Call: the answers come in the order of the calls, each by one Receive. The deadline of
// ctx is the handler's, too; head and bulk may be used again when it returns. The call leaves with others, at the latest
// when Receive has no answer at hand.
func (l *Line) Send(ctx context.Context, method string, head Raw, bulk []byte) error {
	l.last++
	f := frame{kind: kindRequest, call: l.last, method: method, head: head, bulk: bulk, millis: millis(ctx)}
	if err := f.check(); err != nil {
		return err
	}
	c, err := l.connected(ctx)
	if err != nil {
		return err
	}
	f.unsummed = l.plain
	if len(l.under) == 0 {
		l.front, l.queued = l.front[:0], 0
	}
	l.front = append(f.appendFront(l.front), f.bulk...)
	l.under = append(l.under, underWay{l.last, method})
	if l.queued++; l.queued < sendTogether {
		return nil
	}
	return l.flush(ctx, c, method)
}

// flush sends the calls that have not left, unless ctx ends before the callee takes them.
func (l *Line) flush(ctx context.Context, c net.Conn, method string) error {
	if l.queued == 0 {
		return nil
	}
	stop := interrupt(ctx, c)
	_, err := c.Write(l.front)
	if !stop() && err == nil {
		err = ctx.Err() // The connection's deadline is over.
	}
	l.front, l.queued = l.front[:0], 0
	if err != nil {
		l.hangUp()
		l.under = l.under[:0]
		return l.lost(ctx, method, err)
	}
	return nil
}

// underWay is a call that was sent and not answered.
type underWay struct {
	call   uint64
	method string
}

// Receive is the second half: it waits for the answer to the oldest call that has none. What it returns is valid until
// the next one. After an error of the connection all calls under way are lost.
func (l *Line) Receive(ctx context.Context) (head Raw, bulk []byte, err error) {
	if len(l.under) == 0 {
		return nil, nil, fmt.Errorf("node %s: %w: nothing was asked", l.node.id, ErrLost)
	}
	f := frame{call: l.under[0].call, method: l.under[0].method}
	c, err := l.holding()
	if err == nil && l.in.Buffered() < headerBytes {
		err = l.flush(ctx, c, f.method)
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := l.answer(ctx, c, &f)
	if err != nil {
		l.hangUp()
		l.under = l.under[:0]
		return nil, nil, l.lost(ctx, f.method, err)
	}
	l.under = append(l.under[:0], l.under[1:]...)
	return r.head, r.bulk, r.err
}

// holding is the connection that calls are under way on.
func (l *Line) holding() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, ErrClosed
	case l.c == nil:
		return nil, ErrLost
	}
	return l.c, nil
}

func (l *Line) lost(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("peer: node %s: %s: %w", l.node.id, method, ctx.Err())
	}
	return fmt.Errorf("node %s: %s: %w: %w", l.node.id, method, ErrLost, err)
}

// exchange sends a request and reads its answer; the error is one of the connection.
func (l *Line) exchange(ctx context.Context, c net.Conn, f *frame) (result, error) {
	stop := interrupt(ctx, c)
	defer stop()
	f.unsummed = l.plain
	l.front = append(f.appendFront(l.front[:0]), f.bulk...)
	if _, err := c.Write(l.front); err != nil {
		return result{}, err
	}
	r, err := l.readAnswer(f)
	if err == nil && !stop() {
		err = ctx.Err() // The connection's deadline is over.
	}
	return r, err
}

// answer reads the answer to a request that was sent.
func (l *Line) answer(ctx context.Context, c net.Conn, f *frame) (result, error) {
	stop := interrupt(ctx, c)
	r, err := l.readAnswer(f)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	return r, err
}

func (l *Line) readAnswer(f *frame) (result, error) {
	var a frame
	var err error
	if l.memory, err = a.read(l.in, l.memory); err != nil {
		return result{}, err
	}
	if a.call != f.call || a.kind != kindAnswer && a.kind != kindError {
		return result{}, fmt.Errorf("%w: no answer to the call", ErrMalformed)
	}
	return l.node.resultOf(f.method, &a), nil
}

func (l *Line) connected(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	c, closed := l.c, l.closed
	l.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if c != nil && len(l.under) == 0 && l.in.Buffered() > 0 { // It says what nobody asked for.
		l.hangUp()
		c = nil
	}
	if c != nil {
		return c, nil
	}
	c, err := l.node.take(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.node.done(c, false)
		return nil, ErrClosed
	}
	l.c, l.plain = c, faithful(c)
	if l.in == nil {
		l.in = bufio.NewReaderSize(c, readBytes)
	}
	l.in.Reset(awakeAt(c))
	return c, nil
}

func (l *Line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c != nil {
		l.node.done(l.c, false)
		l.c = nil
	}
}

// Close ends the line and a call that is under way.
func (l *Line) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.hangUp()
	return nil
}
