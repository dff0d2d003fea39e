package nic

import (
	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/frame"
)

// refuse tells the peer why a request failed, and breaks the connection. The
// socket stays until the peer has closed it: closing it with bytes unread would
// take the answer away from the peer. So does that of the other direction, whose
// end the peer must not hear of before the answer.
func (c *callee) refuse(e *Engine, status fabric.Status) {
	q := c.detach(e)
	if c.unacked && c.room() >= frame.AnswerBytes {
		c.answer(frame.Answer{Kind: frame.Ack, Seq: c.last})
	}
	if c.room() >= frame.AnswerBytes && !c.headed {
		c.answer(frame.Answer{Kind: frame.Nak, Status: status, Seq: c.req.Seq})
	}
	_ = c.flush(&e.poll)
	c.from, c.to = 0, 0
	c.watch(&e.poll, false, c.blocked)
	if !c.blocked {
		_ = unix.Shutdown(c.fd, unix.SHUT_WR)
	}
	e.draining = append(e.draining, c)
	if l, ok := q.link.(*caller); ok {
		c.partner = l.linger(e)
	}
	e.fail(q, fabric.PeerLost)
}

// detach lets go of the queue pair.
func (c *callee) detach(e *Engine) *qp {
	q := c.q
	c.unpark(e)
	if c.gotRecv {
		q.recvCQ.release()
		c.gotRecv = false
	}
	if q.sender == waiter(c) {
		q.sender = nil
	}
	q.callee, c.q = nil, nil
	return q
}

// drain throws away what a refused peer still sends, until it hangs up.
func (c *callee) drain(e *Engine) {
	if c.blocked {
		if c.flush(&e.poll) != nil {
			c.gone(e)
			return
		}
		if !c.blocked {
			_ = unix.Shutdown(c.fd, unix.SHUT_WR)
		}
	}
	c.from, c.to = 0, 0
	if _, err := c.fill(nil, 0); err != nil && err != unix.EAGAIN {
		c.gone(e)
	}
}

func (c *callee) gone(e *Engine) {
	c.stream.close(&e.poll)
	if c.partner != nil {
		c.partner.close(&e.poll)
	}
	for i, d := range e.draining {
		if d == c {
			e.draining = append(e.draining[:i], e.draining[i+1:]...)
			return
		}
	}
}

// lose ends a stream whose peer is gone.
func (c *callee) lose(e *Engine) {
	q := c.detach(e)
	c.stream.close(&e.poll)
	e.fail(q, fabric.PeerLost)
}

func (c *callee) malformed(e *Engine) {
	e.totals.Malformed++
	c.lose(e)
}

// survive ends a request whose memory failed under it.
func (c *callee) survive(e *Engine) {
	if r := recover(); r != nil {
		e.outOfUse(r)
		if c.q != nil {
			c.refuse(e, fabric.RemoteFault)
		}
	}
}
