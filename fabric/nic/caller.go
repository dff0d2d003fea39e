package nic

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/frame"
	"github.com/ostrodb/ostro/fabric/ring"
)

// caller is the initiator's end of a stream: it sends the requests of one queue
// pair and completes them as answers come.
type caller struct {
	stream
	q       *qp
	flights []flight // by request index, modulo the queue's depth
	dirty   bool     // in the engine's list of those with something to write
	lostAs  fabric.Status

	// A READ's answer that is coming in.
	reading bool
	got     uint64
	want    uint64
}

// flight is what the end of a request in flight needs to know.
type flight struct {
	id     uint64
	local  [fabric.MaxPieces]fabric.Piece
	bytes  uint64
	pieces uint8
	flags  fabric.Flags
	op     fabric.Op
	idle   bool // was never sent: done when those before it are
}

// brings tells whether a request has an answer of its own.
func (f *flight) brings() bool {
	return f.op == fabric.OpRead || f.op == fabric.OpCAS || f.op == fabric.OpAdd
}

func newCaller(fd int, q *qp) *caller {
	return &caller{stream: newStream(fd), q: q, flights: make([]flight, q.shared.Send.Depth()), lostAs: fabric.PeerLost}
}

func (c *caller) flight(index uint64) *flight { return &c.flights[index&uint64(len(c.flights)-1)] }

// issue sends the request being executed, or a further part of it.
func (c *caller) issue(e *Engine, q *qp) (outcome, fabric.Status) {
	w := &q.cur
	var local spans
	need := fabric.Access(0)
	if w.Op == fabric.OpRead || w.Op == fabric.OpCAS || w.Op == fabric.OpAdd {
		need = fabric.LocalWrite
	}
	if status := e.pieces(q, w, need, &local); status != fabric.OK {
		return finished, status
	}
	if local.total > math.MaxUint32 {
		q.session.metrics.RefusedRequest++
		return finished, fabric.BadRequest
	}
	if !q.sentHeader {
		if c.room() < frame.RequestBytes {
			return c.hold(e)
		}
		r := request(q, local.total)
		r.Encode((*[frame.RequestBytes]byte)(c.grow(frame.RequestBytes)))
		q.sentHeader = true
		e.markDirty(c)
	}
	if w.Op != fabric.OpRead && w.Op != fabric.OpCAS && w.Op != fabric.OpAdd && w.Op != fabric.OpFlush {
		if how := c.send(e, q, &local); how != started {
			return how, 0
		}
	}
	c.takeOff(q, false, local.total)
	return started, 0
}

func request(q *qp, total uint64) frame.Request {
	w := &q.cur
	r := frame.Request{
		Op: w.Op, Flags: w.Flags & fabric.Persist, Seq: uint32(q.next), Bytes: uint32(total), Imm: w.Imm, At: w.Remote, A: w.A, B: w.B,
	}
	if w.Op == fabric.OpFlush {
		r.Bytes = w.Local[0].Bytes
	}
	return r
}

// send copies payload into the outbox. The copy lets go of the source at once:
// nothing of a revoked region is in the engine's hands afterwards.
func (c *caller) send(e *Engine, q *qp, local *spans) outcome {
	for q.moved < local.total {
		n := min(local.total-q.moved, q.room, uint64(c.stream.room()))
		if n == 0 && q.room == 0 {
			return paused
		}
		if n == 0 {
			how, _ := c.hold(e)
			return how
		}
		list, at := seek(local.list[:local.n], q.moved)
		gather(c.spare(int(n)), list, at)
		c.grow(int(n))
		q.moved += n
		q.room -= n
		q.session.metrics.Bytes += n
		e.markDirty(c)
	}
	return started
}

// gather fills to from a list, beginning at bytes into its first one.
func gather(to []byte, from []span, at uint64) {
	for len(to) > 0 {
		n := min(from[0].n-at, uint64(len(to)))
		copy(to, unsafe.Slice((*byte)(unsafe.Add(from[0].p, at)), n))
		to, from, at = to[n:], from[1:], 0
	}
}

// hold waits for room in the outbox.
func (c *caller) hold(e *Engine) (outcome, fabric.Status) {
	if err := c.flush(&e.poll); err != nil {
		return finished, fabric.PeerLost
	}
	if c.blocked {
		return stalled, 0 // The socket tells when it takes more.
	}
	return paused, 0
}

// takeOff notes a request that is in flight from now on.
func (c *caller) takeOff(q *qp, idle bool, bytes uint64) {
	w := &q.cur
	f := c.flight(q.next)
	*f = flight{id: w.ID, op: w.Op, flags: w.Flags, pieces: w.Pieces, local: w.Local, bytes: bytes, idle: idle}
}

// idle lets a request that needs no peer end behind those in flight.
func (c *caller) idle(_ *Engine, q *qp) outcome {
	c.takeOff(q, true, 0)
	return started
}

// markDirty has the outbox written when the loop's round is over, so that one
// system call carries all requests of the round.
func (e *Engine) markDirty(c *caller) {
	if !c.dirty {
		c.dirty = true
		e.dirty = append(e.dirty, c)
	}
}

func (e *Engine) flushDirty() {
	for _, c := range e.dirty {
		c.dirty = false
		if !c.closed {
			c.goOn(e)
		}
	}
	clear(e.dirty)
	e.dirty = e.dirty[:0]
}

// goOn writes what the socket takes. A request that waited for that goes on: when all is written the socket tells no more.
func (c *caller) goOn(e *Engine) {
	waited := c.blocked
	if err := c.flush(&e.poll); err != nil {
		e.fail(c.q, fabric.PeerLost)
		return
	}
	if waited && !c.blocked {
		e.enqueue(c.q)
	}
}

// ready takes answers and continues what waited for the socket.
func (c *caller) ready(e *Engine, events uint32) {
	defer e.survive(c.q)
	if events&unix.EPOLLOUT != 0 {
		c.goOn(e)
	}
	if c.closed || events&^unix.EPOLLOUT == 0 {
		return
	}
	place, n := c.direct(e)
	placed, err := c.fill(place, n)
	if err == unix.EAGAIN {
		return
	}
	if err != nil {
		e.fail(c.q, fabric.PeerLost)
		return
	}
	c.got += placed
	before := c.q.head
	for !c.closed && c.parse(e) {
	}
	if c.q.head != before {
		c.q.shared.Send.Free(c.q.head)
		e.enqueue(c.q) // A fence, or room in the queue, may have been waited for.
	}
}

// direct is where the READ's bytes that are still to come belong, if they are many.
func (c *caller) direct(e *Engine) (unsafe.Pointer, uint64) {
	if !c.reading || c.want-c.got < directBytes {
		return nil, 0
	}
	to, ok := c.destination(e)
	if !ok {
		return nil, 0
	}
	list, at := seek(to.list[:to.n], c.got)
	return unsafe.Add(list[0].p, at), min(list[0].n-at, c.want-c.got-lastBytes)
}

// destination is the local memory of the oldest request.
func (c *caller) destination(e *Engine) (*spans, bool) {
	f := c.flight(c.q.head)
	var to spans
	w := fabric.WR{Local: f.local, Pieces: f.pieces}
	return &to, e.pieces(c.q, &w, fabric.LocalWrite, &to) == fabric.OK
}

// parse takes one answer, or what there is of a READ's bytes. It tells whether
// there may be more.
func (c *caller) parse(e *Engine) bool {
	if c.reading {
		return c.readOn(e)
	}
	if len(c.unread()) < frame.AnswerBytes {
		return false
	}
	var a frame.Answer
	err := a.Decode((*[frame.AnswerBytes]byte)(c.unread()))
	c.skip(frame.AnswerBytes)
	if err != nil || !c.land(e, &a) {
		e.totals.Malformed++
		e.fail(c.q, fabric.PeerLost)
		return false
	}
	return !c.closed
}

// land ends the requests that an answer is about. It tells whether the answer
// made sense: its sequence must be in flight, and of the right operation.
func (c *caller) land(e *Engine, a *frame.Answer) bool {
	q := c.q
	ahead := uint64(a.Seq - uint32(q.head))
	if ahead >= q.next-q.head && !(ahead == q.next-q.head && q.sentHeader && a.Kind == frame.Nak) {
		return false
	}
	for range ahead {
		if f := c.flight(q.head); !f.idle && f.brings() {
			return false // It cannot have been executed: what it found never came.
		}
		c.finish(e, fabric.OK)
	}
	if q.head == q.next { // A request that is still being sent was refused.
		e.fail(q, a.Status)
		return true
	}
	f := c.flight(q.head)
	switch a.Kind {
	case frame.Ack:
		if f.brings() {
			return false
		}
		c.finish(e, fabric.OK)
	case frame.Value:
		return (f.op == fabric.OpCAS || f.op == fabric.OpAdd) && c.value(e, a.Value)
	case frame.Data:
		if f.op != fabric.OpRead || f.bytes != a.Value {
			return false
		}
		c.reading, c.got, c.want = true, 0, a.Value
	case frame.Nak:
		c.finish(e, a.Status)
		c.lostAs = fabric.Flushed // The peer executes nothing behind a request that failed.
		e.fail(q, fabric.Flushed)
	}
	c.finishIdle(e)
	return true
}

func (c *caller) value(e *Engine, old uint64) bool {
	to, ok := c.destination(e)
	if !ok {
		e.fail(c.q, fabric.LocalAccess)
		return true
	}
	placeResult(to, old)
	c.finish(e, fabric.OK)
	c.finishIdle(e)
	return true
}

// readOn places bytes of a READ that were read ahead.
func (c *caller) readOn(e *Engine) bool {
	to, ok := c.destination(e)
	if !ok {
		e.fail(c.q, fabric.LocalAccess)
		return false
	}
	for have := uint64(len(c.unread())); have > 0 && c.got < c.want; have = uint64(len(c.unread())) {
		list, at := seek(to.list[:to.n], c.got)
		n := min(list[0].n-at, c.want-c.got, have)
		ring.Place(unsafe.Add(list[0].p, at), unsafe.Pointer(&c.unread()[0]), n)
		c.skip(int(n))
		c.got += n
	}
	if c.got < c.want {
		return false
	}
	c.reading = false
	c.q.session.metrics.Bytes += c.want
	c.finish(e, fabric.OK)
	c.finishIdle(e)
	return true
}

// finish ends the oldest request in flight.
func (c *caller) finish(e *Engine, status fabric.Status) {
	f := c.flight(c.q.head)
	e.finish(c.q, status, f.id, f.op, f.flags)
}

// finishIdle ends requests that only waited for those before them.
func (c *caller) finishIdle(e *Engine) {
	for q := c.q; q.head != q.next && c.flight(q.head).idle; {
		c.finish(e, fabric.OK)
	}
}

// linger lets the socket stay open, unheard, when the rest is closed.
func (c *caller) linger(e *Engine) *stream {
	kept := c.stream
	e.poll.remove(c.fd)
	c.closed = true
	return &kept
}

// close ends everything in flight: nobody knows how far it got.
func (c *caller) close(e *Engine) {
	c.stream.close(&e.poll)
	for c.q.head != c.q.next {
		c.finish(e, c.lostAs)
	}
}
