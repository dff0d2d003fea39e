package nic

import (
	"runtime"
	"runtime/debug"

	"github.com/ostrodb/ostro/fabric"
)

// A turn of one queue pair ends after so many requests or bytes. Bytes are few,
// because nothing else in the process can be stopped (by the collector, say)
// while they are copied.
const (
	turnRequests = 64
	turnBytes    = 64 << 10
)

// outcome is how far a request got.
type outcome uint8

const (
	finished outcome = iota // and has a status
	started                 // in flight over a link
	paused                  // the turn's bytes are used up
	stalled                 // something will enqueue the queue pair again
)

// run gives a queue pair its turn.
func (e *Engine) run(q *qp) {
	defer e.survive(q)
	if q.sender != nil && e.recvWaits(q) {
		w := q.sender
		q.sender = nil
		w.recvPosted(e)
	}
	freed := q.head
	more := q.state == fabric.Ready && e.turn(q)
	if q.head != freed {
		q.shared.Send.Free(q.head)
	}
	switch {
	case q.state == fabric.Failed:
		e.flush(q)
	case more:
		e.enqueue(q)
	}
}

// turn executes requests until the turn is over, and then tells so, or until
// there is nothing to go on with.
func (e *Engine) turn(q *qp) (more bool) {
	q.room = turnBytes
	for range turnRequests {
		if !e.fetch(q) {
			return false
		}
		how, status := e.stepOrWait(q)
		switch {
		case how == stalled:
			return false
		case how == paused:
			return true
		case how == started:
			q.fetched, q.sentHeader = false, false
			q.next++
		case status != fabric.OK:
			e.fail(q, status)
			return false
		default:
			e.complete(q, status)
		}
		if q.room == 0 {
			return true
		}
	}
	return true
}

// stepOrWait executes a request. One that fails before anything of it was sent
// waits for those in flight first, so that they end as they deserve.
func (e *Engine) stepOrWait(q *qp) (outcome, fabric.Status) {
	how, status := finished, q.doomed
	if status == fabric.OK {
		how, status = e.step(q)
	}
	if how == finished && status != fabric.OK && q.head != q.next && !q.sentHeader {
		q.doomed = status
		return stalled, 0
	}
	return how, status
}

// fetch copies the next request, if it is there and the NIC's, and reserves room
// for its completion.
func (e *Engine) fetch(q *qp) bool {
	if q.fetched {
		return !q.holds
	}
	if q.next == q.tail {
		tail := q.shared.Send.Tail()
		if tail-q.head > q.shared.Send.Depth() {
			q.session.metrics.RefusedRequest++
			e.fail(q, fabric.BadRequest) // The program wrote nonsense into its own queue.
			return false
		}
		if q.tail = tail; q.next == tail {
			return false
		}
	}
	at := q.sendSlot(q.next)
	if q.sends > 0 && q.next-q.head >= q.sends {
		return false // Its last life is in flight; the end of that continues it.
	}
	if !q.shared.Send.Owned(at) {
		if !q.unowned {
			q.unowned = true
			e.unowned = append(e.unowned, q)
		}
		return false
	}
	if !q.sendCQ.reserve() {
		q.session.starving = true
		return false
	}
	q.shared.Send.Get(at, &q.cur)
	if q.sends > 0 {
		q.renew(at)
	}
	q.fetched, q.moved, q.gotRecv, q.sentHeader, q.doomed = true, 0, false, false, fabric.OK
	return true
}

// complete ends the request at next on a local path.
func (e *Engine) complete(q *qp, status fabric.Status) {
	q.fetched, q.holds = false, false
	q.next++
	e.finish(q, status, q.cur.ID, q.cur.Op, q.cur.Flags)
}

// finish ends the oldest request and tells the program if it asked or if it failed.
func (e *Engine) finish(q *qp, status fabric.Status, id uint64, op fabric.Op, flags fabric.Flags) {
	q.head++
	if status != fabric.Flushed {
		q.session.metrics.Operations++
	}
	if status == fabric.OK && flags&fabric.Signaled == 0 {
		q.sendCQ.release()
		return
	}
	q.shared.Send.Free(q.head) // First: who sees the completion may use the slot.
	q.sendCQ.push(e, &fabric.Completion{ID: id, QP: q.number, Status: status, Op: op})
}

// flush ends all requests of a failed queue pair, as far as there is room for
// their completions.
func (e *Engine) flush(q *qp) {
	var w fabric.WR
	for tail := q.sendEnd(); q.next < tail && tail-q.head <= q.shared.Send.Depth(); q.next++ {
		if !q.sendCQ.reserve() {
			q.session.starving = true
			break
		}
		q.shared.Send.Get(q.sendSlot(q.next), &w)
		e.finish(q, fabric.Flushed, w.ID, w.Op, w.Flags)
	}
	q.shared.Send.Free(q.head)
	for tail := q.recvEnd(); q.recvHead < tail && tail-q.recvHead <= q.shared.Recv.Depth(); q.recvHead++ {
		if !q.recvCQ.reserve() {
			q.session.starving = true
			break
		}
		q.shared.Recv.Get(q.recvSlot(q.recvHead), &w)
		q.recvCQ.push(e, &fabric.Completion{ID: w.ID, QP: q.number, Status: fabric.Flushed, Op: fabric.OpRecv})
	}
	q.shared.Recv.Free(q.recvHead)
}

// survive ends a request whose memory failed under it.
func (e *Engine) survive(q *qp) {
	r := recover()
	if r == nil {
		return
	}
	bad := e.outOfUse(r)
	if bad.dom == q.dom && q.peer != q {
		e.fail(q, fabric.LocalAccess)
	} else {
		e.fail(q, fabric.RemoteFault)
	}
}

// outOfUse finds the region whose memory failed and takes it out of use. Any
// other panic is a bug of ours.
func (e *Engine) outOfUse(panicked any) *region {
	fault, ok := panicked.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		panic(panicked)
	}
	bad := e.blame(fault.Addr())
	if bad == nil {
		e.conf.Log.Error("fault outside of all regions", "stack", string(debug.Stack()))
		panic(panicked)
	}
	bad.dom.session.metrics.Faults++
	e.conf.Log.Warn("a region's memory failed and is out of use; was its file cut?",
		"tenant", bad.dom.tenant, "device", bad.dom.session.name, "error", fault.Error())
	return bad
}
