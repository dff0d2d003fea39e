package replica

import (
	"context"
	"fmt"
	"time"
)

// A write that neither arrives nor fails holds up the watermark for as long as the fabric
// believes in the connection: a network that swallows packets can make that minutes.
// So a link fails when a write has made no progress for stallTicks looks in a row. Looks are
// counted, not time: who was stopped himself blames nobody.
const (
	stallTick  = 200 * time.Millisecond
	stallTicks = 6
)

// waiting is how far a stream was, and how often it was found there with something in flight.
type waiting struct {
	done  uint32
	looks int
}

func (p *Primary) stallLoop(ctx context.Context) {
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	seen := map[*stream]waiting{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			seen = p.findStalled(seen)
		}
	}
}

// findStalled fails links whose writes stand still, and returns who waits now.
func (p *Primary) findStalled(before map[*stream]waiting) map[*stream]waiting {
	now := map[*stream]waiting{}
	for _, s := range *p.streams.Load() {
		if s.flying.Load() == 0 || s.broken.Load() || s.link.broken.Load() {
			continue
		}
		w := waiting{done: s.done.Load(), looks: 1}
		if was, ok := before[s]; ok && was.done == w.done {
			w.looks = was.looks + 1
		}
		now[s] = w
		if w.looks > stallTicks {
			s.link.fail(fmt.Errorf("a write to node %s has not arrived for %s", s.node, stallTicks*stallTick))
		}
	}
	return now
}
