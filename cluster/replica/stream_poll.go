package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// completionsAtOnce is how many completions are taken in one go.
const completionsAtOnce = 64

// poller takes completions when no worker does, see attendance. It polls for a moment after each,
// then sleeps in the completion queue, where the NIC wakes it: who seals never has to.
func (p *Primary) poller(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	p.attendance.open.Store(true)
	for ctx.Err() == nil {
		if p.attendance.others() {
			p.attendance.park(ctx, timer)
		} else if err := p.cq.Wait(ctx); err != nil {
			if ctx.Err() == nil {
				p.fabricLost(err)
			}
			return
		}
		p.attendance.taking.Lock()
		p.take()
		p.attendance.taking.Unlock()
	}
}

// take handles completions that are there. The caller holds taking.
func (p *Primary) take() {
	for {
		n := p.cq.Poll(p.batch[:])
		p.handle(p.batch[:n])
		if n < len(p.batch) {
			return
		}
	}
}

// handle tells streams what has become of their writes.
func (p *Primary) handle(batch []fabric.Completion) {
	moved := false
	streams := *p.streams.Load()
	for i := range batch {
		c := &batch[i]
		s := streams[uint32(c.ID>>32)]
		switch {
		case s == nil: // It was retired.
		case c.Status != fabric.OK:
			s.link.fail(fmt.Errorf("a write to node %s failed: %s", s.node, c.Status))
		default:
			s.arrived(uint32(c.ID))
			moved = p.count(s.seg) || moved
			if s.link.starved.Load() && s.link.starved.Swap(false) {
				p.pushAll()
			}
		}
	}
	if moved {
		p.source.Advanced()
	}
}

// count tells the watermark what is complete of a segment, and whether it moved.
func (p *Primary) count(g *openSegment) bool {
	moved, finished := g.count(&p.water)
	if finished {
		p.closer.add(g)
	}
	return moved
}

func (p *Primary) pushAll() {
	for _, s := range *p.streams.Load() {
		s.again()
	}
}

// fabricLost ends replication when there is no NIC any more.
func (p *Primary) fabricLost(err error) {
	if errors.Is(err, fabric.ErrClosed) {
		return
	}
	p.fail(fmt.Errorf("replication has lost its fabric, restart the node when the NIC runs again: %w", err))
}
