package server

import (
	"context"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// latestPatience is how long a client waits until it is known who owns what.
const latestPatience = 20 * time.Second

// Latest reads the map in etcd; see redis.Mapper.
func (g redisGate) Latest(done func(view.Map, error)) {
	m := g.slots
	m.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(m.ctx, latestPatience)
		defer cancel()
		s, err := m.meta.Read(ctx)
		if err == nil {
			g.show(s)
			err = g.settled(ctx)
		}
		if err != nil {
			done(view.Map{}, fmt.Errorf("it is not known for sure which keys are whose, try it again: %w", err))
			return
		}
		done(s.Map, nil)
	})
}

// settled waits until nothing of this node's own is being recovered or changes hands.
func (g *gate) settled(ctx context.Context) error {
	for {
		g.mu.Lock()
		turn, over := g.changed, len(g.shown) == 0 && len(g.expected) == 0
		g.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
