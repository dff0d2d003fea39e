package nic

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

// step executes the fetched request, or a slice of it.
func (e *Engine) step(q *qp) (outcome, fabric.Status) {
	w := &q.cur
	if w.Pieces > fabric.MaxPieces {
		q.session.metrics.RefusedRequest++
		return finished, fabric.BadRequest
	}
	if q.plan != nil && q.plan.holds(e, q) {
		return stalled, 0
	}
	switch w.Op {
	case fabric.OpNop:
		return e.inTurn(q)
	case fabric.OpWait:
		return e.wait(q)
	case fabric.OpWrite, fabric.OpWriteImm, fabric.OpRead, fabric.OpCAS, fabric.OpAdd, fabric.OpFlush, fabric.OpSend:
	default:
		q.session.metrics.RefusedRequest++
		return finished, fabric.BadRequest
	}
	if q.link != nil {
		if w.Flags&fabric.Fenced != 0 && q.head != q.next && !q.sentHeader {
			return stalled, 0 // The last completion in flight continues it.
		}
		return q.link.issue(e, q)
	}
	switch w.Op {
	case fabric.OpCAS, fabric.OpAdd:
		return finished, e.atomic(q)
	case fabric.OpFlush:
		return e.flushTarget(q)
	default:
		return e.copy(q)
	}
}

// inTurn ends a request that does nothing, after all in flight before it.
func (e *Engine) inTurn(q *qp) (outcome, fabric.Status) {
	if q.link != nil && q.head != q.next {
		return q.link.idle(e, q), 0
	}
	return finished, fabric.OK
}

// wait holds the queue until a completion queue of the same domain has counted
// far enough.
func (e *Engine) wait(q *qp) (outcome, fabric.Status) {
	var c *cq
	if q.cur.CQ < uint32(len(e.cqs)) {
		c = e.cqs[q.cur.CQ]
	}
	if c == nil || c.dom != q.dom {
		q.session.metrics.RefusedLocal++
		return finished, fabric.LocalAccess
	}
	if c.produced < q.cur.A {
		c.await(q)
		return stalled, 0
	}
	return e.inTurn(q)
}

// atomic executes CAS or ADD on a peer of this engine. The instructions are the
// processor's own, so programs may use theirs on the same words.
func (e *Engine) atomic(q *qp) fabric.Status {
	w := &q.cur
	var result spans
	if status := e.pieces(q, w, fabric.LocalWrite, &result); status != fabric.OK {
		return status
	}
	at, status := e.atomicTarget(q.peer, w.Remote)
	if status != fabric.OK {
		return status
	}
	if q.plan != nil && q.plan.spend(8) < 8 {
		return fabric.PeerLost
	}
	old := execute(w, at)
	placeResult(&result, old)
	q.session.metrics.Bytes += 8
	return fabric.OK
}

// atomicTarget finds the word that a peer of target wants to change.
func (e *Engine) atomicTarget(target *qp, at fabric.Target) (*uint64, fabric.Status) {
	p, status := e.remote(target, at, 8, fabric.RemoteAtomic)
	if status != fabric.OK {
		return nil, status
	}
	if uintptr(p)&7 != 0 {
		target.session.metrics.RefusedRequest++
		return nil, fabric.RemoteInvalid
	}
	return (*uint64)(p), fabric.OK
}

func execute(w *fabric.WR, at *uint64) (old uint64) {
	if w.Op == fabric.OpAdd {
		return atomic.AddUint64(at, w.A) - w.A
	}
	for {
		old = atomic.LoadUint64(at)
		if old != w.A || atomic.CompareAndSwapUint64(at, w.A, w.B) {
			return old
		}
	}
}

// placeResult stores what an atomic found, if the request has room for it.
func placeResult(to *spans, old uint64) {
	word := [1]span{{unsafe.Pointer(&old), 8}}
	copySpans(to.list[:to.n], word[:], 0, min(8, to.total))
}

// copy executes WRITE, READ and SEND between two queue pairs of this engine.
func (e *Engine) copy(q *qp) (outcome, fabric.Status) {
	w := &q.cur
	var from, to spans
	if how, status := e.ends(q, &from, &to); how != finished || status != fabric.OK {
		return how, status
	}
	total := from.total
	if w.Op == fabric.OpRead {
		total = to.total
	}
	n := min(total-q.moved, q.room)
	allowed := n
	if q.plan != nil {
		allowed = q.plan.spend(n)
	}
	copySpans(to.list[:to.n], from.list[:from.n], q.moved, allowed)
	q.moved += allowed
	q.room -= allowed
	q.session.metrics.Bytes += allowed
	switch {
	case allowed < n || q.plan != nil && q.plan.cutNow():
		return finished, fabric.PeerLost
	case q.moved < total:
		return paused, 0
	}
	if q.gotRecv {
		q.gotRecv = false
		e.completeRecv(q.peer, &q.recv, w, uint32(total))
	}
	return finished, fabric.OK
}

// ends finds the memory on both sides. It does so again for every slice: a
// region may be revoked between two.
func (e *Engine) ends(q *qp, from, to *spans) (outcome, fabric.Status) {
	w := &q.cur
	local, need, right := from, fabric.Access(0), fabric.RemoteWrite
	if w.Op == fabric.OpRead {
		local, need, right = to, fabric.LocalWrite, fabric.RemoteRead
	}
	if status := e.pieces(q, w, need, local); status != fabric.OK {
		return finished, status
	}
	if w.Op == fabric.OpSend || w.Op == fabric.OpWriteImm {
		if how, status := e.claimRecv(q); how != finished || status != fabric.OK {
			return how, status
		}
	}
	if w.Op == fabric.OpSend {
		status := e.recvSpans(q.peer, &q.recv, local.total, to)
		q.gotRecv = status == fabric.OK
		return finished, status
	}
	p, status := e.remote(q.peer, w.Remote, local.total, right)
	if status != fabric.OK {
		return finished, status
	}
	far := to
	if w.Op == fabric.OpRead {
		far = from
	}
	far.list[0], far.n, far.total = span{p, local.total}, 1, local.total
	return finished, fabric.OK
}

// claimRecv makes sure that the peer has a RECV for the request, or stalls.
func (e *Engine) claimRecv(q *qp) (outcome, fabric.Status) {
	if q.gotRecv {
		return finished, fabric.OK
	}
	if e.takeRecv(q.peer, &q.recv) {
		q.gotRecv = true
		e.untime(q)
		return finished, fabric.OK
	}
	if q.timed && !time.Now().Before(q.deadline) {
		e.untime(q)
		return finished, fabric.NotReady
	}
	if q.peer.sender == nil {
		q.peer.session.metrics.RNRWaits++
		q.peer.sender = q
		e.setDeadline(q, q.rnrWait)
	}
	return stalled, 0
}

// spans are the pieces of one side of a copy.
type spans struct {
	list  [fabric.MaxPieces]span
	n     int
	total uint64
}

type span struct {
	p unsafe.Pointer
	n uint64
}

// pieces finds the local memory of a request.
func (e *Engine) pieces(q *qp, w *fabric.WR, need fabric.Access, into *spans) fabric.Status {
	into.n, into.total = int(w.Pieces), 0
	for i := range into.n {
		p, ok := e.piece(q, w.Local[i], need)
		if !ok {
			q.session.metrics.RefusedLocal++
			return fabric.LocalAccess
		}
		into.list[i] = span{p, uint64(w.Local[i].Bytes)}
		into.total += uint64(w.Local[i].Bytes)
	}
	return fabric.OK
}

// copySpans places limit bytes, beginning skip bytes into both sides.
func copySpans(to, from []span, skip, limit uint64) {
	to, toAt := seek(to, skip)
	from, fromAt := seek(from, skip)
	for limit > 0 {
		n := min(to[0].n-toAt, from[0].n-fromAt, limit)
		ring.Place(unsafe.Add(to[0].p, toAt), unsafe.Add(from[0].p, fromAt), n)
		toAt, fromAt, limit = toAt+n, fromAt+n, limit-n
		if toAt == to[0].n {
			to, toAt = to[1:], 0
		}
		if fromAt == from[0].n {
			from, fromAt = from[1:], 0
		}
	}
}

func seek(list []span, skip uint64) ([]span, uint64) {
	for len(list) > 0 && skip >= list[0].n {
		skip -= list[0].n
		list = list[1:]
	}
	return list, skip
}
