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

	in     *bufio.Reader
	front  []byte
	memory []byte
	last   uint64
}

// Line makes a line to a node. The caller closes it.
func (p *Pool) Line(to view.NodeID) (*Line, error) {
	n, err := p.node(to)
	if err != nil {
		return nil, err
	}
	return &Line{node: n}, nil
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
		if ctx.Err() != nil {
			return nil, fmt.Errorf("peer: node %s: %s: %w", l.node.id, method, ctx.Err())
		}
		return nil, fmt.Errorf("node %s: %s: %w: %w", l.node.id, method, ErrLost, err)
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.bulk, decodeHead(r.head, answer)
}

// exchange sends a request and reads its answer; the error is one of the connection.
func (l *Line) exchange(ctx context.Context, c net.Conn, f *frame) (result, error) {
	stop := interrupt(ctx, c)
	defer stop()
	l.front = append(f.appendFront(l.front[:0]), f.bulk...)
	if _, err := c.Write(l.front); err != nil {
		return result{}, err
	}
	var a frame
	var err error
	if l.memory, err = a.read(l.in, l.memory); err != nil {
		return result{}, err
	}
	if a.call != f.call || a.kind != kindAnswer && a.kind != kindError {
		return result{}, fmt.Errorf("%w: no answer to the call", ErrMalformed)
	}
	if !stop() {
		return result{}, ctx.Err() // The connection's deadline is over.
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
	if c != nil && l.in.Buffered() > 0 { // It says what nobody asked for.
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
	l.c = c
	if l.in == nil {
		l.in = bufio.NewReaderSize(c, readBytes)
	}
	l.in.Reset(c)
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
