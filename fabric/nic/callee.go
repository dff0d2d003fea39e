package nic

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/frame"
	"github.com/ostrodb/ostro/fabric/ring"
)

// callee is the target's end of a stream: it executes the peer's requests one
// after the other, and acknowledges all that one read brought with one answer.
type callee struct {
	stream
	q       *qp // nil once it failed: what still comes is thrown away
	rnrWait time.Duration

	req     frame.Request
	inside  bool   // req's header was taken, and it is not finished
	moved   uint64 // of its payload, or of a READ's answer
	recv    fabric.WR
	gotRecv bool
	headed  bool // the header of a READ's answer is in the outbox

	last     uint32 // sequence of the last request that was executed
	begun    bool
	unacked  bool
	crowded  bool // the outbox had no room for an answer, or for the rest of one
	parked   bool // waits for a RECV
	syncing  bool // waits for a helper
	deadline time.Time
	partner  *stream // the other direction of a refused connection
}

func newCallee(fd int, q *qp, wait time.Duration) *callee {
	return &callee{stream: newStream(fd), q: q, rnrWait: wait}
}

const hungUp = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR

// ready reads what the socket has and executes it.
func (c *callee) ready(e *Engine, events uint32) {
	if c.q == nil {
		c.drain(e)
		return
	}
	defer c.survive(e)
	if c.mute && events&hungUp != 0 {
		c.lose(e)
		return
	}
	if events&unix.EPOLLOUT != 0 {
		if err := c.flush(&e.poll); err != nil {
			c.lose(e)
			return
		}
		if c.blocked {
			return
		}
		c.work(e)
	}
	if c.q == nil || c.closed || c.mute || events&^unix.EPOLLOUT == 0 {
		return
	}
	place, n, status := c.direct(e)
	if status != fabric.OK {
		c.refuse(e, status)
		return
	}
	placed, err := c.fill(place, n)
	switch {
	case err == unix.EAGAIN:
		return
	case errors.Is(err, unix.EFAULT) && place != nil && e.blame(uintptr(place)) != nil:
		c.q.session.metrics.Faults++
		c.refuse(e, fabric.RemoteFault)
		return
	case err != nil:
		c.lose(e)
		return
	}
	c.moved += placed
	c.work(e)
}

// work executes all that is at hand, then acknowledges it.
func (c *callee) work(e *Engine) {
	for c.crowded = true; c.crowded && !c.blocked; {
		c.crowded = false
		for c.q != nil && !c.closed && c.one(e) {
		}
		if c.q == nil || c.closed {
			return
		}
		if c.unacked && c.room() >= frame.AnswerBytes {
			c.answer(frame.Answer{Kind: frame.Ack, Seq: c.last})
			c.unacked = false
		}
		if err := c.flush(&e.poll); err != nil {
			c.lose(e)
			return
		}
	}
	// Nothing is read while a request waits: what comes is kept by the socket.
	c.watch(&e.poll, c.parked || c.syncing || c.blocked, c.blocked)
}

// answer puts an answer into the outbox, which has room.
func (c *callee) answer(a frame.Answer) {
	a.Encode((*[frame.AnswerBytes]byte)(c.grow(frame.AnswerBytes)))
}

// one takes a request, or goes on with one. It tells whether there may be more
// to do at once.
func (c *callee) one(e *Engine) bool {
	if c.syncing {
		return false
	}
	if !c.inside {
		if c.crowded = c.room() < frame.AnswerBytes; c.crowded || len(c.unread()) < frame.RequestBytes {
			return false
		}
		err := c.req.Decode((*[frame.RequestBytes]byte)(c.unread()))
		c.skip(frame.RequestBytes)
		if err != nil || c.begun && int32(c.req.Seq-c.last) <= 0 {
			c.malformed(e)
			return false
		}
		c.inside, c.moved, c.gotRecv, c.headed = true, 0, false, false
	}
	done, status := c.step(e)
	switch {
	case status != fabric.OK:
		c.refuse(e, status)
		return false
	case !done:
		return false
	}
	c.inside, c.begun, c.last = false, true, c.req.Seq
	return true
}

// step executes the request as far as it can.
func (c *callee) step(e *Engine) (done bool, status fabric.Status) {
	switch c.req.Op {
	case fabric.OpRead:
		return c.read(e)
	case fabric.OpCAS, fabric.OpAdd:
		at, status := e.atomicTarget(c.q, c.req.At)
		if status != fabric.OK {
			return false, status
		}
		w := fabric.WR{Op: c.req.Op, A: c.req.A, B: c.req.B}
		c.answer(frame.Answer{Kind: frame.Value, Seq: c.req.Seq, Value: execute(&w, at)})
		c.unacked = false
		return true, fabric.OK
	case fabric.OpFlush:
		return c.sync(e)
	default:
		return c.place(e)
	}
}

// destination finds where the payload belongs. It is asked again for every part:
// a region may be revoked between two.
func (c *callee) destination(e *Engine, to *spans) fabric.Status {
	if c.req.Op == fabric.OpSend {
		status := e.recvSpans(c.q, &c.recv, uint64(c.req.Bytes), to)
		c.gotRecv = status == fabric.OK
		return status
	}
	p, status := e.remote(c.q, c.req.At, uint64(c.req.Bytes), fabric.RemoteWrite)
	to.list[0], to.n, to.total = span{p, uint64(c.req.Bytes)}, 1, uint64(c.req.Bytes)
	return status
}

// place takes the payload of a WRITE or SEND that is at hand.
func (c *callee) place(e *Engine) (bool, fabric.Status) {
	if c.req.Op != fabric.OpWrite && !c.gotRecv {
		if ok, status := c.claim(e); !ok {
			return false, status
		}
	}
	var to spans
	if status := c.destination(e, &to); status != fabric.OK {
		return false, status
	}
	total := uint64(c.req.Bytes)
	for have := uint64(len(c.unread())); have > 0 && c.moved < total; have = uint64(len(c.unread())) {
		list, at := seek(to.list[:to.n], c.moved)
		n := min(list[0].n-at, total-c.moved, have)
		ring.Place(unsafe.Add(list[0].p, at), unsafe.Pointer(&c.unread()[0]), n)
		c.skip(int(n))
		c.moved += n
	}
	if c.moved < total {
		return false, fabric.OK
	}
	if c.gotRecv {
		c.gotRecv = false
		w := fabric.WR{Op: c.req.Op, Imm: c.req.Imm}
		e.completeRecv(c.q, &c.recv, &w, c.req.Bytes)
	}
	c.unacked = true
	return true, fabric.OK
}

// direct is where the payload that is still to come belongs, if it is much. Its
// end comes by way of the staging buffer, so that it lands when all else has.
func (c *callee) direct(e *Engine) (unsafe.Pointer, uint64, fabric.Status) {
	left := uint64(c.req.Payload()) - c.moved
	if !c.inside || c.req.Payload() == 0 || left < directBytes || c.req.Op != fabric.OpWrite && !c.gotRecv {
		return nil, 0, fabric.OK
	}
	var to spans
	if status := c.destination(e, &to); status != fabric.OK {
		return nil, 0, status
	}
	list, at := seek(to.list[:to.n], c.moved)
	return unsafe.Add(list[0].p, at), min(list[0].n-at, left-lastBytes), fabric.OK
}

// claim makes sure that there is a RECV, or waits for one.
func (c *callee) claim(e *Engine) (bool, fabric.Status) {
	if e.takeRecv(c.q, &c.recv) {
		c.gotRecv = true
		c.unpark(e)
		return true, fabric.OK
	}
	if c.parked && c.rnrWait >= 0 && !time.Now().Before(c.deadline) {
		return false, fabric.NotReady
	}
	if !c.parked {
		c.parked = true
		c.deadline = time.Now().Add(c.rnrWait)
		c.q.session.metrics.RNRWaits++
		e.parked = append(e.parked, c)
	}
	c.q.sender = c
	return false, fabric.OK
}

func (c *callee) unpark(e *Engine) {
	if !c.parked {
		return
	}
	c.parked = false
	for i, p := range e.parked {
		if p == c {
			e.parked = append(e.parked[:i], e.parked[i+1:]...)
			return
		}
	}
}

// recvPosted goes on with a request that waited for a RECV.
func (c *callee) recvPosted(e *Engine) {
	defer c.survive(e)
	c.work(e)
}

// read answers a READ, as far as the outbox has room.
func (c *callee) read(e *Engine) (bool, fabric.Status) {
	total := uint64(c.req.Bytes)
	from, status := e.remote(c.q, c.req.At, total, fabric.RemoteRead)
	if status != fabric.OK {
		return false, status
	}
	if !c.headed {
		c.answer(frame.Answer{Kind: frame.Data, Seq: c.req.Seq, Value: total})
		c.headed, c.unacked = true, false
	}
	for c.moved < total {
		n := min(total-c.moved, uint64(c.room()), turnBytes)
		if n == 0 {
			if err := c.flush(&e.poll); err != nil {
				return false, fabric.PeerLost
			}
			if c.blocked {
				c.crowded = true // The socket may take all of it before it is watched.
				return false, fabric.OK
			}
			continue
		}
		copy(c.spare(int(n)), unsafe.Slice((*byte)(unsafe.Add(from, c.moved)), n))
		c.grow(int(n))
		c.moved += n
	}
	return true, fabric.OK
}

// sync executes a FLUSH, with a helper if a medium has to be reached.
func (c *callee) sync(e *Engine) (bool, fabric.Status) {
	_, status := e.remote(c.q, c.req.At, uint64(c.req.Bytes), fabric.RemoteWrite)
	if status != fabric.OK || c.headed || !e.persists(c.req.Flags, c.req.At) {
		c.unacked = status == fabric.OK || c.unacked
		return status == fabric.OK, status
	}
	c.syncing = true
	e.persist(c.req.At, uint64(c.req.Bytes), func(status fabric.Status) {
		c.syncing = false
		switch {
		case c.q == nil || c.closed:
		case status != fabric.OK:
			c.refuse(e, status)
		default:
			c.headed = true // It is on the medium: the next step ends it.
			c.work(e)
		}
	})
	return false, fabric.OK
}
