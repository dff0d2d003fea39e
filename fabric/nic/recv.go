package nic

import "github.com/ostrodb/ostro/fabric"

// recvWaits tells whether the program has posted a RECV that nothing has used.
func (e *Engine) recvWaits(q *qp) bool {
	if q.recvs > 0 {
		return q.shared.Recv.Owned(q.recvSlot(q.recvHead))
	}
	tail := q.shared.Recv.Tail()
	return q.recvHead != tail && tail-q.recvHead <= q.shared.Recv.Depth() && q.shared.Recv.Owned(q.recvHead)
}

// takeRecv copies the next RECV, which stays at the head until it is completed,
// and reserves room for its completion.
func (e *Engine) takeRecv(q *qp, into *fabric.WR) bool {
	if !e.recvWaits(q) {
		return false
	}
	if !q.recvCQ.reserve() {
		q.session.starving = true
		return false
	}
	q.shared.Recv.Get(q.recvSlot(q.recvHead), into)
	return true
}

// recvSpans finds the memory of a RECV for a message of n bytes. A RECV that
// cannot take it fails, and with it the connection.
func (e *Engine) recvSpans(q *qp, w *fabric.WR, n uint64, into *spans) fabric.Status {
	status, answer := fabric.OK, fabric.RemoteInvalid
	switch {
	case w.Op != fabric.OpRecv || w.Pieces > fabric.MaxPieces:
		q.session.metrics.RefusedRequest++
		status = fabric.BadRequest
	default:
		status = e.pieces(q, w, fabric.LocalWrite, into)
	}
	if status == fabric.OK && into.total < n {
		status, answer = fabric.TooLong, fabric.TooLong
	}
	if status == fabric.OK {
		return fabric.OK
	}
	q.endRecv(e, fabric.Completion{ID: w.ID, Status: status, Op: fabric.OpRecv})
	return answer
}

// completeRecv ends a RECV with the message or the immediate of a peer's request.
func (e *Engine) completeRecv(q *qp, recv, w *fabric.WR, bytes uint32) {
	q.session.metrics.Messages++
	q.endRecv(e, fabric.Completion{
		ID: recv.ID, Bytes: bytes, Op: fabric.OpRecv,
		Imm: w.Imm, HasImm: w.Op == fabric.OpWriteImm,
	})
}

func (q *qp) endRecv(e *Engine, done fabric.Completion) {
	done.QP = q.number
	q.recvHead++
	q.shared.Recv.Free(q.recvHead)
	q.recvCQ.push(e, &done)
}
