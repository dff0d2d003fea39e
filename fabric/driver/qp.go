package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/ring"
)

// QP is a queue pair. Its locks keep posters of one queue apart, and all from the
// unmapping of the memory.
type QP struct {
	domain   *domain
	number   uint32
	bell     uint32
	endpoint fabric.Endpoint
	mem      *fabric.Memory
	shared   *ring.Pair

	mu         sync.Mutex
	gone       bool
	repeats    bool
	closed     bool // to further requests: it repeats those it has
	posted     atomic.Uint64
	recvPosted uint64
}

// Number is the queue pair's number.
func (q *QP) Number() uint32 { return q.number }

// Endpoint is for the peer's Connect.
func (q *QP) Endpoint() fabric.Endpoint { return q.endpoint }

// Posted is the index of the next request.
func (q *QP) Posted() uint64 { return q.posted.Load() }

// Done is how many requests have ended.
func (q *QP) Done() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return q.posted.Load()
	}
	return q.shared.Send.Head()
}

// SendDepth is the number of slots in the send queue.
func (q *QP) SendDepth() uint64 { return q.shared.Send.Depth() }

// Connect names the peer.
func (q *QP) Connect(peer fabric.Endpoint) error {
	q.mu.Lock()
	q.closed = q.repeats
	q.mu.Unlock()
	_, _, err := q.domain.device.call(nic.Request{Verb: nic.Connect, Domain: q.domain.id, QP: q.number, Endpoint: &peer}, nil)
	return err
}

// State is where the queue pair is in its life.
func (q *QP) State() fabric.State {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return fabric.Retired
	}
	return q.shared.State()
}

// Ready waits until the connection is there.
func (q *QP) Ready(ctx context.Context) error {
	for {
		if over, err := q.State().Settled(); over {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		q.sleep(ctx)
	}
}

// sleep waits for another state. The memory is mapped once more for it, so that
// Close need not wait.
func (q *QP) sleep(ctx context.Context) {
	q.mu.Lock()
	if q.gone {
		q.mu.Unlock()
		return
	}
	own, err := fabric.MapFile(q.mem.File(), 0, len(q.mem.Bytes()))
	q.mu.Unlock()
	if err != nil {
		return
	}
	defer own.Close()
	pair := ring.NewPair(own.Bytes(), q.shared.Send.Depth(), q.shared.Recv.Depth())
	if ctx.Err() == nil {
		pair.SleepUntilStateLeaves(fabric.Fresh)
	}
}

// Post appends to the send queue.
func (q *QP) Post(batch ...fabric.WR) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.posted.Load()
	if err := q.post(&q.shared.Send, at, batch); err != nil {
		return err
	}
	q.posted.Store(at + uint64(len(batch)))
	return nil
}

// PostRecv appends to the receive queue.
func (q *QP) PostRecv(batch ...fabric.WR) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.post(&q.shared.Recv, q.recvPosted, batch); err != nil {
		return err
	}
	q.recvPosted += uint64(len(batch))
	return nil
}

var errRepeats = errors.New("fabric: a queue that repeats takes no more requests once it is connected")

func (q *QP) post(queue *ring.Queue, at uint64, batch []fabric.WR) error {
	if q.gone {
		return fabric.ErrClosed
	}
	if q.domain.device.lost.Load() {
		return fabric.ErrNICLost
	}
	if q.closed {
		return errRepeats
	}
	if at+uint64(len(batch))-queue.Head() > queue.Depth() {
		return fabric.ErrFull
	}
	for i := range batch {
		queue.Put(at+uint64(i), &batch[i])
	}
	queue.Publish(at + uint64(len(batch)))
	q.domain.device.ringBell(q.bell)
	return nil
}

// HandOver makes a request the NIC's.
func (q *QP) HandOver(index uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return fabric.ErrClosed
	}
	if posted := q.posted.Load(); index >= posted || !q.repeats && index < q.shared.Send.Head() {
		return fmt.Errorf("fabric: request %d is not in the queue, which holds %d to %d", index, q.shared.Send.Head(), posted)
	}
	q.shared.Send.HandOver(index)
	q.domain.device.ringBell(q.bell)
	return nil
}

// Close breaks the connection and fences.
func (q *QP) Close() error {
	d := q.domain.device
	_, _, err := d.call(nic.Request{Verb: nic.CloseQP, Domain: q.domain.id, QP: q.number}, nil)
	if err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.qps, q)
	d.mu.Unlock()
	q.unmap()
	return nil
}

func (q *QP) unmap() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gone {
		q.gone = true
		_ = q.mem.Close()
	}
}

// lose marks the queue pair broken when there is no engine to do so.
func (q *QP) lose() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gone {
		q.shared.SetState(fabric.Failed)
	}
}
