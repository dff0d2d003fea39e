package peer

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/ostrodb/ostro/internal/background"
)

// take is a connection for one call.
func (n *node) take(ctx context.Context) (net.Conn, error) {
	for {
		c := n.takeIdle()
		if c == nil {
			break
		}
		if untouched(c) {
			return c, nil
		}
		n.done(c, false)
	}
	c, err := n.pool.dial(ctx, n.id)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed != nil {
		_ = c.Close()
		return nil, n.closed
	}
	n.alone[c] = struct{}{}
	return c, nil
}

func (n *node) takeIdle() net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	last := len(n.idle) - 1
	if last < 0 {
		return nil
	}
	c := n.idle[last]
	n.idle = n.idle[:last]
	n.alone[c] = struct{}{}
	return c
}

// done gives a connection back. One that is not clean, in the middle of something,
// is closed.
func (n *node) done(c net.Conn, clean bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.alone, c)
	if clean && n.closed == nil && len(n.idle) < idleConns && c.SetDeadline(time.Time{}) == nil {
		n.idle = append(n.idle, c)
		return
	}
	_ = c.Close()
}

// callAlone is Call on a connection of its own.
func (n *node) callAlone(ctx context.Context, f *frame) result {
	s, err := n.stream(ctx, f)
	if err != nil {
		return result{err: err}
	}
	defer s.Close()
	r := s.next()
	if r.err == nil && !s.last {
		r.err = fmt.Errorf("node %s: %s: %w: an answer in parts", n.id, f.method, ErrMalformed)
	}
	return r
}

// stream sends a request on a connection of its own.
func (n *node) stream(ctx context.Context, f *frame) (*Stream, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	c, err := n.take(ctx)
	if err != nil {
		return nil, err
	}
	s := &Stream{node: n, ctx: ctx, c: c, method: f.method, stop: interrupt(ctx, c)}
	if err := f.writeTo(c); err != nil {
		s.broken = true
		err = s.failure(err)
		_ = s.Close()
		return nil, err
	}
	s.in = bufio.NewReaderSize(awakeAt(c), readBytes)
	return s, nil
}

// writeTo writes a request; a large one piece by piece, so that others have the core and the network in between.
func (f *frame) writeTo(c net.Conn) (err error) {
	f.unsummed = faithful(c)
	if len(f.bulk) < largeBulk {
		parts := net.Buffers{f.appendFront(nil), f.bulk}
		_, err = parts.WriteTo(c)
		return err
	}
	var pace background.Pace
	_, err = c.Write(f.appendFront(nil))
	for at := 0; at < len(f.bulk) && err == nil; at += background.Piece {
		pace.Rest()
		_, err = c.Write(f.bulk[at:min(at+background.Piece, len(f.bulk))])
	}
	return err
}

// Stream is an answer in parts. It is for one goroutine at a time.
type Stream struct {
	node   *node
	ctx    context.Context
	c      net.Conn
	in     *bufio.Reader
	method string
	stop   func() bool
	memory []byte
	stall  time.Duration

	last, broken, closed bool
}

// Next returns the next part, which is valid until the one after. At the end
// last is true, and the part is the handler's answer.
func (s *Stream) Next(head any) (bulk []byte, last bool, err error) {
	r := s.next()
	if r.err != nil {
		return nil, s.last, r.err
	}
	return r.bulk, s.last, decodeHead(r.head, head)
}

// Stall is how long Next waits for the next part; then the stream is lost. Without it
// only the context ends the waiting.
func (s *Stream) Stall(d time.Duration) { s.stall = d }

func (s *Stream) next() result {
	if s.last || s.broken || s.closed {
		return result{err: fmt.Errorf("node %s: %s: %w", s.node.id, s.method, ErrClosed)}
	}
	var f frame
	err := s.patience()
	if err == nil {
		s.memory, err = f.read(s.in, s.memory)
	}
	if err == nil && f.kind != kindPart && f.kind != kindAnswer && f.kind != kindError {
		err = fmt.Errorf("%w: no part of an answer", ErrMalformed)
	}
	if err != nil {
		s.broken = true
		return result{err: s.failure(err)}
	}
	if f.kind == kindPart {
		return result{head: f.head, bulk: f.bulk}
	}
	s.last = true
	return s.node.resultOf(s.method, &f)
}

// patience sets the time for the next part. The end of ctx sets it, too, and must win.
func (s *Stream) patience() error {
	if s.stall == 0 {
		return nil
	}
	if err := s.c.SetReadDeadline(time.Now().Add(s.stall)); err != nil {
		return err
	}
	return s.ctx.Err()
}

// failure is what a broken connection means for the call.
func (s *Stream) failure(err error) error {
	if s.ctx.Err() != nil {
		return fmt.Errorf("peer: node %s: %s: %w", s.node.id, s.method, s.ctx.Err())
	}
	return fmt.Errorf("node %s: %s: %w: %w", s.node.id, s.method, ErrLost, err)
}

// Close ends the stream, early or not.
func (s *Stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	clean := s.stop() && s.last && !s.broken && s.in.Buffered() == 0
	s.node.done(s.c, clean)
	return nil
}
