package driver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/ring"
)

// CQ is a completion queue. Its lock keeps takers apart, and all from the
// unmapping of the memory.
type CQ struct {
	domain *domain
	number uint32
	mem    *fabric.Memory
	shared *ring.Completions

	spinner ring.Spinner
	take    sync.Mutex   // one taker at a time
	inUse   sync.RWMutex // held while the memory is used
	leaving atomic.Bool  // nobody shall sleep any more
	gone    bool
}

// Number names the queue in WAITs.
func (c *CQ) Number() uint32 { return c.number }

// Poll takes completions.
func (c *CQ) Poll(into []fabric.Completion) int {
	c.inUse.RLock()
	defer c.inUse.RUnlock()
	if c.gone {
		return 0
	}
	c.take.Lock()
	n := c.shared.Take(into)
	c.take.Unlock()
	if n > 0 && c.shared.Relieve() {
		c.domain.device.ringBell(ring.Kick)
	}
	return n
}

// Count is the number of completions ever pushed.
func (c *CQ) Count() uint64 {
	c.inUse.RLock()
	defer c.inUse.RUnlock()
	if c.gone {
		return 0
	}
	return c.shared.Produced()
}

// spinFor is how long Wait polls before it sleeps: about as long as the way
// through a NIC that is awake.
const spinFor = 20 * time.Microsecond

// Wait returns when there is something to take.
func (c *CQ) Wait(ctx context.Context) error {
	return c.wait(ctx, func(uint64) bool { return c.shared.Depth() > 0 && c.shared.Produced() != c.shared.Consumed() })
}

// WaitPast returns when more than count completions were pushed.
func (c *CQ) WaitPast(ctx context.Context, count uint64) error {
	return c.wait(ctx, func(seen uint64) bool { return seen > count })
}

func (c *CQ) wait(ctx context.Context, over func(seen uint64) bool) error {
	spin := c.spinner.Begin()
	for {
		seen, ready, err := c.look(over)
		if ready || err != nil {
			spin.Found()
			return err
		}
		if !spin.Enough() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.sleep(ctx, seen)
		spin = c.spinner.Begin()
	}
}

// look tells the count, and whether a wait is over.
func (c *CQ) look(over func(seen uint64) bool) (seen uint64, ready bool, err error) {
	c.inUse.RLock()
	defer c.inUse.RUnlock()
	if c.leaving.Load() {
		return 0, false, fabric.ErrClosed
	}
	seen = c.shared.Produced()
	switch {
	case over(seen):
		return seen, true, nil
	case c.domain.device.lost.Load():
		return seen, false, fabric.ErrNICLost
	}
	return seen, false, nil
}

func (c *CQ) sleep(ctx context.Context, seen uint64) {
	c.inUse.RLock()
	defer c.inUse.RUnlock()
	if c.leaving.Load() {
		return
	}
	stop := context.AfterFunc(ctx, c.wake)
	defer stop()
	c.shared.SleepAt(seen)
}

// wake ends sleeps: the count has not changed, so they look and find out why.
func (c *CQ) wake() {
	c.inUse.RLock()
	defer c.inUse.RUnlock()
	if !c.gone {
		c.shared.Wake()
	}
}

// Close gives the queue back. Queue pairs that complete into it must be closed first.
func (c *CQ) Close() error {
	d := c.domain.device
	_, _, err := d.call(nic.Request{Verb: nic.CloseCQ, Domain: c.domain.id, CQ: c.number}, nil)
	if err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.live, c)
	d.mu.Unlock()
	c.unmap()
	return nil
}

func (c *CQ) unmap() {
	c.leaving.Store(true)
	c.wake()
	c.inUse.Lock()
	defer c.inUse.Unlock()
	if !c.gone {
		c.gone = true
		_ = c.mem.Close()
	}
}
