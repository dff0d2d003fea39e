//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

// QP is a queue pair. Requests wait in requests until the hardware takes them,
// in order, and stay there until it has ended them.
//
//	done       given       posted
//	│ hardware │ waiting │
type QP struct {
	domain    *domain
	qp        *C.struct_ibv_qp
	endpoint  fabric.Endpoint
	send      *CQ
	recv      *CQ
	sendDepth uint64
	recvDepth uint64
	forEver   bool // SENDs wait for a RECV without a limit

	state fabric.State
	want  fabric.Endpoint
	wants bool
	cause fabric.Status // what requests in flight end with when they are flushed
	// refused is what is wrong with the next request, if it was not given.
	refused fabric.Status

	requests            []fabric.WR // by index modulo depth
	done, given, posted uint64
	recvs               []fabric.WR
	recvDone, recvGiven uint64
	recvPosted          uint64

	calls   net.Conn // ours to the peer
	called  net.Conn // the peer's to us
	knocks  *knock
	dialing context.CancelFunc
}

const (
	defaultDepth = 128
	fromRecv     = 1 << 63 // in ids for the hardware
)

func (dom *domain) NewQP(c fabric.QPConfig) (fabric.QP, error) {
	send, ok1 := c.SendCQ.(*CQ)
	recv, ok2 := c.RecvCQ.(*CQ)
	if !ok1 || !ok2 {
		return nil, errors.New("verbs: a queue pair needs two completion queues of its own device")
	}
	if c.Repeat {
		return nil, fmt.Errorf("verbs: queues that repeat: %w", fabric.ErrUnsupported)
	}
	leave, err := dom.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	q := &QP{
		domain: dom, send: send, recv: recv, cause: fabric.PeerLost,
		sendDepth: ring.Depth(c.SendDepth, defaultDepth), recvDepth: ring.Depth(c.RecvDepth, defaultDepth),
		forEver: c.RNRWait <= 0 || c.RNRWait >= time.Second,
	}
	q.requests, q.recvs = make([]fabric.WR, q.sendDepth), make([]fabric.WR, q.recvDepth)
	q.qp, err = C.create(dom.pd, send.cq, recv.cq, C.uint32_t(q.sendDepth), C.uint32_t(q.recvDepth))
	if q.qp == nil {
		return nil, fmt.Errorf("verbs: create a queue pair: %w", err)
	}
	if err := failed("prepare a queue pair", C.to_init(q.qp, rights(fabric.Everything))); err != nil {
		C.ibv_destroy_qp(q.qp)
		return nil, err
	}
	d := dom.device
	q.endpoint = fabric.Endpoint{
		NIC: d.gid, QP: uint32(q.qp.qp_num), Token: rand.Uint64(), Peer: d.conf.Name, Addr: d.addr(),
	}
	d.qps[q.endpoint.QP] = q
	send.users++
	recv.users++
	return q, nil
}

// Number is the queue pair's number.
func (q *QP) Number() uint32 { return q.endpoint.QP }

// Endpoint is for the peer's Connect.
func (q *QP) Endpoint() fabric.Endpoint { return q.endpoint }

// SendDepth is the number of requests the send queue holds.
func (q *QP) SendDepth() uint64 { return q.sendDepth }

// HandOver is for registered rings, which there are none of.
func (q *QP) HandOver(uint64) error { return fabric.ErrUnsupported }

// Posted is the index of the next request.
func (q *QP) Posted() uint64 {
	q.domain.device.mu.Lock()
	defer q.domain.device.mu.Unlock()
	return q.posted
}

// Done is how many requests have ended.
func (q *QP) Done() uint64 {
	leave, err := q.enter()
	if err != nil {
		return q.posted
	}
	defer leave()
	q.send.drain()
	return q.done
}

// State is where the queue pair is in its life.
func (q *QP) State() fabric.State {
	q.domain.device.mu.Lock()
	defer q.domain.device.mu.Unlock()
	return q.state
}

func (q *QP) enter() (func(), error) {
	leave, err := q.domain.enter()
	if err == nil && q.state == fabric.Retired {
		leave()
		return nil, fabric.ErrClosed
	}
	return leave, err
}

// Post appends to the send queue.
func (q *QP) Post(batch ...fabric.WR) error {
	return q.put(batch, q.requests, &q.posted, &q.done, q.send)
}

// PostRecv appends to the receive queue.
func (q *QP) PostRecv(batch ...fabric.WR) error {
	return q.put(batch, q.recvs, &q.recvPosted, &q.recvDone, q.recv)
}

// put appends a batch to a queue, if there is room once its completions are taken.
func (q *QP) put(batch, queue []fabric.WR, posted, done *uint64, completions *CQ) error {
	leave, err := q.enter()
	if err != nil {
		return err
	}
	defer leave()
	depth := uint64(len(queue))
	full := func() bool { return *posted+uint64(len(batch))-*done > depth }
	if full() {
		completions.drain()
	}
	if full() {
		return fabric.ErrFull
	}
	for _, w := range batch {
		queue[*posted%depth] = w
		*posted++
	}
	q.pump()
	return nil
}

// pump gives requests to the hardware, or flushes them. The caller has the lock.
func (q *QP) pump() {
	for q.state < fabric.Failed && q.recvGiven < q.recvPosted {
		if !q.giveRecv(&q.recvs[q.recvGiven%q.recvDepth]) {
			break
		}
		q.recvGiven++
	}
	for q.state == fabric.Ready && q.given < q.posted {
		if status := q.give(&q.requests[q.given%q.sendDepth]); status != fabric.OK {
			if q.done == q.given { // A bad request ends when those before it have.
				q.refused = status
				q.fail(fabric.Flushed)
			}
			break
		}
		q.given++
	}
	if q.state != fabric.Failed {
		return
	}
	for q.done == q.given && q.done < q.posted {
		q.given++
		q.finish(q.why())
	}
	for q.recvDone == q.recvGiven && q.recvDone < q.recvPosted {
		q.recvGiven++
		q.finishRecv(ending{status: C.IBV_WC_WR_FLUSH_ERR})
	}
}

// why is what is wrong with the request that broke the queue pair, once.
func (q *QP) why() fabric.Status {
	if why := q.refused; why != fabric.OK {
		q.refused = fabric.OK
		return why
	}
	return fabric.Flushed
}

// give posts a request. All are signaled to the hardware, so that it tells how
// each ended. A request that cannot succeed is not given.
func (q *QP) give(w *fabric.WR) fabric.Status {
	if status := q.check(w); status != fabric.OK {
		return status
	}
	flags := C.int(C.IBV_SEND_SIGNALED)
	if w.Flags&fabric.Fenced != 0 {
		flags |= C.IBV_SEND_FENCE
	}
	list, n := pieces(w)
	at := w.Remote
	switch w.Op {
	case fabric.OpNop:
		at, n = fabric.Target{}, 0
	case fabric.OpFlush:
		n = 0
		if size := w.Local[0].Bytes; size > 0 {
			at.Addr += uint64(size) - 1
			list[0], n = q.domain.flushPiece(), 1
		}
	case fabric.OpCAS, fabric.OpAdd:
		if n == 0 {
			list[0], n = q.domain.flushPiece(), 1
			list[0].length = 8
		}
	}
	if C.post_send(q.qp, C.uint64_t(q.given), opcodes[w.Op], flags, &list[0], C.int(n), C.uint64_t(at.Addr), C.uint32_t(at.Key),
		C.uint64_t(w.A), C.uint64_t(w.B), C.uint32_t(w.Imm)) != 0 {
		return fabric.BadRequest
	}
	return fabric.OK
}

// check finds what is wrong with a request on this side.
func (q *QP) check(w *fabric.WR) fabric.Status {
	_, known := opcodes[w.Op]
	atomic := w.Op == fabric.OpCAS || w.Op == fabric.OpAdd
	switch {
	case !known || w.Pieces > fabric.MaxPieces || w.Unowned:
		return fabric.BadRequest
	case atomic && w.Remote.Addr%8 != 0:
		return fabric.RemoteInvalid
	}
	need := fabric.Access(0)
	if atomic || w.Op == fabric.OpRead {
		need = fabric.LocalWrite
	}
	for _, p := range w.Local[:w.Pieces] {
		if !q.domain.allows(p, need) {
			return fabric.LocalAccess
		}
	}
	return fabric.OK
}

func (q *QP) giveRecv(w *fabric.WR) bool {
	if w.Pieces > fabric.MaxPieces {
		return false
	}
	list, n := pieces(w)
	return C.post_recv(q.qp, C.uint64_t(q.recvGiven|fromRecv), &list[0], C.int(n)) == 0
}

// pieces translates local memory, without what is empty.
func pieces(w *fabric.WR) (list [fabric.MaxPieces]C.struct_ibv_sge, n int) {
	for _, p := range w.Local[:min(w.Pieces, fabric.MaxPieces)] {
		if p.Bytes > 0 {
			list[n] = C.struct_ibv_sge{addr: C.uint64_t(p.Addr), length: C.uint32_t(p.Bytes), lkey: C.uint32_t(p.Key)}
			n++
		}
	}
	return list, n
}

func (dom *domain) flushPiece() C.struct_ibv_sge {
	at := uintptr(unsafe.Pointer(&dom.device.scratch.Bytes()[0]))
	return C.struct_ibv_sge{addr: C.uint64_t(at), length: 1, lkey: dom.flush.lkey}
}

// ended takes what the hardware says of a request. The caller has the lock.
func (q *QP) ended(e ending) {
	if e.id&fromRecv != 0 {
		q.finishRecv(e)
	} else {
		status := translate(q.requests[q.done%q.sendDepth].Op, e.status)
		if status == fabric.Flushed && q.cause == fabric.PeerLost {
			status = fabric.PeerLost
		}
		q.finish(status)
		if status != fabric.OK {
			q.cause = fabric.Flushed
			q.fail(fabric.Flushed)
		}
	}
	if e.status != C.IBV_WC_SUCCESS {
		q.fail(fabric.PeerLost)
	}
	q.pump()
}

// finish ends the oldest request.
func (q *QP) finish(status fabric.Status) {
	w := &q.requests[q.done%q.sendDepth]
	q.done++
	if status != fabric.Flushed {
		q.domain.device.metrics.Operations++
	}
	if status != fabric.OK || w.Flags&fabric.Signaled != 0 {
		q.send.push(fabric.Completion{ID: w.ID, QP: q.endpoint.QP, Status: status, Op: w.Op})
	}
}

func (q *QP) finishRecv(e ending) {
	w := &q.recvs[q.recvDone%q.recvDepth]
	q.recvDone++
	done := fabric.Completion{ID: w.ID, QP: q.endpoint.QP, Status: translate(fabric.OpRecv, e.status), Op: fabric.OpRecv}
	if done.Status == fabric.OK {
		q.domain.device.metrics.Messages++
		done.Bytes, done.Imm, done.HasImm = e.bytes, e.imm, e.hasImm
	}
	q.recv.push(done)
}

// fail breaks the connection, here and by its TCP connections at the peer.
func (q *QP) fail(cause fabric.Status) {
	if q.state >= fabric.Failed {
		return
	}
	q.state, q.cause = fabric.Failed, cause
	q.domain.device.metrics.Broken++
	C.to_error(q.qp)
	q.hangUp()
	q.pump()
}

// fence breaks the connection and returns when nothing can land through it:
// the error state alone lets bytes land for a while. The queue pair itself goes;
// what it was given ends here.
func (q *QP) fence() {
	q.fail(fabric.PeerLost)
	if q.qp == nil {
		return
	}
	C.ibv_destroy_qp(q.qp)
	q.qp = nil
	q.send.drain()
	q.recv.drain()
	for q.done < q.given {
		q.finish(fabric.PeerLost)
	}
	for q.recvDone < q.recvGiven {
		q.finishRecv(ending{status: C.IBV_WC_WR_FLUSH_ERR})
	}
	q.pump()
}

// Close breaks the connection and fences.
func (q *QP) Close() error {
	leave, err := q.enter()
	if err != nil {
		return err
	}
	defer leave()
	q.retire()
	return nil
}

func (q *QP) retire() {
	q.fence()
	q.state = fabric.Retired
	delete(q.domain.device.qps, q.endpoint.QP)
	q.send.users--
	q.recv.users--
}
