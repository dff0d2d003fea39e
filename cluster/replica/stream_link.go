package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/fabric"
)

// link is all queue pairs to one backup. They are made together and fail
// together: a backup that loses one of them is replaced, or linked anew.
type link struct {
	node    view.NodeID
	staging *staging
	sender  *sender // of a link that replicates by calls; nil if it is one-sided
	onFail  func(*link)

	qps  []fabric.QP
	next atomic.Uint32

	starved atomic.Bool // a queue was full: somebody must push all streams
	silent  atomic.Bool // the node has no lease any more, or does not answer; writes may still arrive
	broken  atomic.Bool
	cause   error // why it is broken; set before
	// unforgiven is until when a silent node stays so though it has a lease. It belongs to
	// the holder of the primary's mu.
	unforgiven time.Time

	mu   sync.Mutex
	kept []stagingRing
	gone bool
}

// good tells whether the link is one to rely on.
func (l *link) good() bool { return !l.broken.Load() && !l.silent.Load() }

// fail notes that nothing arrives through the link any more.
func (l *link) fail(err error) {
	l.mu.Lock()
	if l.broken.Load() {
		l.mu.Unlock()
		return
	}
	l.cause = err
	l.broken.Store(true)
	l.mu.Unlock()
	l.onFail(l)
}

// why tells the reason for which the link is not good.
func (l *link) why() string {
	switch {
	case l.broken.Load():
		return l.cause.Error()
	case l.silent.Load():
		return "its lease has ended, or it does not answer"
	}
	return ""
}

// lane chooses a queue pair for a stream.
func (l *link) lane() fabric.QP {
	return l.qps[int(l.next.Add(1))%len(l.qps)]
}

// keep holds a ring until the link is closed.
func (l *link) keep(r stagingRing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		l.staging.give(r)
		return
	}
	l.kept = append(l.kept, r)
}

// close ends the queue pairs; the NIC reads none of the rings any more.
func (l *link) close() error {
	if l.sender != nil {
		l.sender.stop()
	}
	var err error
	for _, q := range l.qps {
		if e := q.Close(); !errors.Is(e, fabric.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	for _, r := range l.kept {
		l.staging.give(r)
	}
	l.kept = nil
	return err
}

// queueDepth is more than the windows of all streams that share a queue pair.
const queueDepth = 256

// dial makes a link: queue pairs here, a call that makes their other ends, and both
// connected.
func (p *Primary) dial(ctx context.Context, node view.NodeID) (*link, error) {
	l := &link{node: node, staging: &p.staging, onFail: p.linkFailed}
	request := ConnectRequest{Log: p.source.LogID}
	if p.o.Mode == OneSided {
		if err := p.makeQueues(l); err != nil {
			return nil, errors.Join(err, l.close())
		}
		for _, q := range l.qps {
			request.Endpoints = append(request.Endpoints, q.Endpoint())
		}
	}
	var answer ConnectAnswer
	_, err := p.call(ctx, node, MethodConnect, request, nil, &answer)
	if err == nil {
		err = p.finishLink(ctx, l, answer)
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (p *Primary) makeQueues(l *link) error {
	for range p.lanes() {
		q, err := p.domain.NewQP(fabric.QPConfig{SendCQ: p.cq, RecvCQ: p.cq, SendDepth: queueDepth, RecvDepth: 1})
		if err != nil {
			return fmt.Errorf("make a queue pair: %w", err)
		}
		l.qps = append(l.qps, q)
	}
	return nil
}

// finishLink connects the queue pairs to the ends that the backup made.
func (p *Primary) finishLink(ctx context.Context, l *link, answer ConnectAnswer) error {
	if int(answer.SegmentBytes) < p.source.SegmentBytes {
		return fmt.Errorf("node %s has buffers of %d bytes, too small for segments of %d: give all nodes the same size of segments",
			l.node, answer.SegmentBytes, p.source.SegmentBytes)
	}
	if p.o.Mode == RPC {
		l.sender = newSender(p, l)
		return nil
	}
	if len(answer.Endpoints) != len(l.qps) {
		return fmt.Errorf("node %s answered with %d queue pairs to %d", l.node, len(answer.Endpoints), len(l.qps))
	}
	for i, q := range l.qps {
		if err := q.Connect(answer.Endpoints[i]); err != nil {
			return fmt.Errorf("connect to node %s: %w", l.node, err)
		}
	}
	for _, q := range l.qps {
		if err := q.Ready(ctx); err != nil {
			return fmt.Errorf("connect to node %s: %w", l.node, err)
		}
	}
	return nil
}

// lanes is how many queue pairs a link has: one for each head that writes, and some for
// those that are closing or being copied.
func (p *Primary) lanes() int { return p.source.Heads + 2 }
