//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// hardwareDepth is the size of the hardware's queue. It is emptied into ready,
// which never overflows, whenever anybody looks.
const hardwareDepth = 8192

// CQ is a completion queue.
type CQ struct {
	domain *domain
	cq     *C.struct_ibv_cq
	number uint32
	counts bool // only
	users  int
	closed bool
	count  uint64
	ready  []fabric.Completion
}

func (dom *domain) NewCQ(depth int) (fabric.CQ, error) {
	leave, err := dom.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	c := &CQ{domain: dom, counts: depth <= 0}
	if c.cq, err = C.ibv_create_cq(dom.device.context, hardwareDepth, nil, nil, 0); c.cq == nil {
		return nil, fmt.Errorf("verbs: create a completion queue: %w", err)
	}
	dom.cqs[c] = struct{}{}
	c.number = uint32(len(dom.cqs))
	return c, nil
}

// Number names the queue; there are no WAITs to use it.
func (c *CQ) Number() uint32 { return c.number }

// push adds a completion. The caller has the lock.
func (c *CQ) push(done fabric.Completion) {
	c.count++
	if !c.counts {
		c.ready = append(c.ready, done)
	}
}

// drain takes over what the hardware has. The caller has the lock.
func (c *CQ) drain() {
	for e, ok := pollOne(c.cq); ok; e, ok = pollOne(c.cq) {
		if q := c.domain.device.qps[e.qp]; q != nil {
			q.ended(e)
		}
	}
}

// Poll takes completions.
func (c *CQ) Poll(into []fabric.Completion) int {
	leave, err := c.domain.enter()
	if err != nil || c.closed {
		if err == nil {
			leave()
		}
		return 0
	}
	defer leave()
	c.drain()
	n := copy(into, c.ready)
	c.ready = c.ready[n:]
	return n
}

// Count is the number of completions ever pushed.
func (c *CQ) Count() uint64 {
	leave, err := c.domain.enter()
	if err != nil {
		return 0
	}
	defer leave()
	if !c.closed {
		c.drain()
	}
	return c.count
}

// Wait returns when there is something to take.
func (c *CQ) Wait(ctx context.Context) error {
	return c.wait(ctx, func() bool { return len(c.ready) > 0 })
}

// WaitPast returns when more than count completions were pushed.
func (c *CQ) WaitPast(ctx context.Context, count uint64) error {
	return c.wait(ctx, func() bool { return c.count > count })
}

// wait looks now and then, ever less often: software devices need the processor
// that polling takes, and many who wait for long would leave them none.
func (c *CQ) wait(ctx context.Context, over func() bool) error {
	for tries := 0; ; tries++ {
		ready, err := c.look(over)
		if ready || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if tries < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond << min((tries-100)/20, 6))
		}
	}
}

func (c *CQ) look(over func() bool) (bool, error) {
	leave, err := c.domain.enter()
	if err != nil {
		return false, err
	}
	defer leave()
	if c.closed {
		return false, fabric.ErrClosed
	}
	c.drain()
	return over(), nil
}

// Close gives the queue back.
func (c *CQ) Close() error {
	leave, err := c.domain.enter()
	if err != nil {
		return err
	}
	defer leave()
	switch {
	case c.closed:
		return fabric.ErrClosed
	case c.users > 0:
		return errors.New("verbs: queue pairs still complete into the queue; close them first")
	}
	c.close()
	return nil
}

func (c *CQ) close() {
	c.closed = true
	C.ibv_destroy_cq(c.cq)
	delete(c.domain.cqs, c)
}
