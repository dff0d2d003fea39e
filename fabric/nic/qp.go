package nic

import (
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

// qp is a queue pair, as the loop sees it.
//
//	head      next       tail
//	│ in flight │ to start │      in flight only over a link: on this machine
//	                              a request is done before the next one starts
type qp struct {
	number  uint32
	bell    uint32
	token   uint64
	session *Session
	dom     *domain
	shared  *ring.Pair
	mem     *fabric.Memory

	sendCQ, recvCQ *cq
	state          fabric.State
	want           fabric.Endpoint // whom Connect named
	wants          bool
	peer           *qp     // on this engine
	link           link    // to another engine
	callee         *callee // from there
	dialing        func()  // ends an attempt to connect
	knocks         *knock  // a peer that called before Connect named it
	rnrWait        time.Duration

	head, next, tail uint64
	recvHead         uint64

	// Of a queue pair that repeats.
	repeats            bool
	sends, recvs       uint64 // requests of a round
	lastSend, lastRecv uint64 // where it ends, once it has failed

	// The request at next, once fetched.
	fetched bool
	cur     fabric.WR
	moved   uint64    // bytes of it that have been placed
	room    uint64    // bytes that this turn may still move
	recv    fabric.WR // the RECV it goes to
	gotRecv bool

	sentHeader bool          // over a link
	doomed     fabric.Status // how it will fail when those in flight have ended
	holds      bool          // a helper works for it; nobody else may continue it

	// Stalls and the lists that remember them.
	queued   bool
	nextRun  *qp
	unowned  bool
	waitsAt  *cq
	sender   waiter // waits for a RECV here
	timed    bool
	deadline time.Time

	plan *plan // faults to inject
}

// waiter is who waits for a RECV: a queue pair of this engine, or a link.
type waiter interface{ recvPosted(e *Engine) }

func (q *qp) recvPosted(e *Engine) { e.enqueue(q) }

// link carries a queue pair's requests to a peer on another engine.
type link interface {
	// issue starts q.cur, or goes on with it.
	issue(e *Engine, q *qp) (outcome, fabric.Status)
	// idle starts q.cur, which needs no peer and completes behind those in flight.
	idle(e *Engine, q *qp) outcome
	// close ends all requests in flight.
	close(e *Engine)
}

func (q *qp) endpoint(addr string) fabric.Endpoint {
	return fabric.Endpoint{NIC: q.session.engine.id, QP: q.number, Token: q.token, Peer: q.session.name, Addr: addr}
}

// setState moves a queue pair on and tells the program.
func (q *qp) setState(s fabric.State) {
	q.state = s
	q.shared.SetState(s)
}

// join connects two queue pairs of this engine when each has named the other.
func (e *Engine) join(q *qp) {
	peer := e.qp(q.want.QP)
	if peer == nil || peer.token != q.want.Token || peer.state != fabric.Fresh {
		e.fail(q, fabric.PeerLost)
		return
	}
	if q.session.banned[peer.session.name] || peer.session.banned[q.session.name] {
		q.session.metrics.RefusedPeer++
		e.fail(q, fabric.PeerLost)
		return
	}
	if !peer.wants || peer.want.QP != q.number || peer.want.Token != q.token || peer.want.NIC != e.id {
		return // Its turn comes.
	}
	q.peer, peer.peer = peer, q
	q.setState(fabric.Ready)
	peer.setState(fabric.Ready)
	e.enqueue(q)
	e.enqueue(peer)
}

// qp finds a queue pair by number.
func (e *Engine) qp(number uint32) *qp {
	if number >= uint32(len(e.qps)) {
		return nil
	}
	return e.qps[number]
}

// fail breaks a connection: the request being executed ends with the status,
// requests in flight are lost, all others will be flushed, at both ends.
func (e *Engine) fail(q *qp, status fabric.Status) {
	if q.state >= fabric.Failed {
		return
	}
	q.setState(fabric.Failed)
	q.endRounds()
	q.session.metrics.Broken++
	peer, link := q.peer, q.link
	q.peer, q.link = nil, nil
	if q.waitsAt != nil {
		q.waitsAt.forget(q)
	}
	q.sender = nil
	e.untime(q)
	q.dropRecv(peer)
	e.hangUp(q, link)
	if peer != nil && peer != q {
		e.fail(peer, fabric.PeerLost) // First: who sees the completion finds both ends failed.
	}
	if q.fetched {
		e.complete(q, status)
	}
	e.enqueue(q)
}

// dropRecv gives a RECV back that the request being executed had claimed.
func (q *qp) dropRecv(peer *qp) {
	if q.gotRecv && peer != nil {
		peer.recvCQ.release()
	}
	q.gotRecv = false
}

// retire closes a queue pair for good. Its memory is free for the caller to unmap.
func (e *Engine) retire(q *qp) {
	e.fail(q, fabric.Flushed)
	q.setState(fabric.Retired)
	e.qps[q.number] = nil
	q.sendCQ.users--
	q.recvCQ.users--
	q.session.dropBell(q)
	drop(&e.unowned, q)
	drop(&e.timed, q)
	if q.queued {
		e.unlink(q)
	}
}

// unlink takes a queue pair out of the run queue.
func (e *Engine) unlink(q *qp) {
	var before *qp
	for at := e.first; at != q; at = at.nextRun {
		before = at
	}
	if before == nil {
		e.unqueue()
		return
	}
	before.nextRun = q.nextRun
	if e.last == q {
		e.last = before
	}
	q.nextRun, q.queued = nil, false
}

func drop(list *[]*qp, q *qp) {
	for i, x := range *list {
		if x == q {
			*list = append((*list)[:i], (*list)[i+1:]...)
			return
		}
	}
}
