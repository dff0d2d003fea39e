package server

import (
	"context"
	"errors"

	"github.com/ostrodb/ostro/cluster/coordinator"
	"github.com/ostrodb/ostro/cluster/meta"
)

// hold does what a member does beside serving, for as long as it is one: it stands for coordinator,
// replays what it inherits, and has floors forgotten that are below all of its log, and as coordinator
// empties the blob tier of logs that are over.
func (l *life) hold(m *meta.Member) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.tasks.Go(func() {
		defer cancel()
		select {
		case <-m.Lease.Lost():
		case <-l.ended:
		}
	})
	l.tasks.Go(func() {
		err := coordinator.Run(ctx, coordinator.Options{
			Member: m, Cache: l.cache, Survey: surveyor{l.host}, Log: l.log.With("part", "coordinator"),
		})
		if err != nil && ctx.Err() == nil && !errors.Is(err, meta.ErrLeaseLost) {
			l.log.Warn("the node no longer stands for coordinator", "why", err)
		}
	})
	l.tasks.Go(func() { l.inherit(ctx, m) })
	l.tasks.Go(func() { l.balance(ctx, m) })
	l.tasks.Go(func() { l.dropFloors(ctx, m) })
	l.tasks.Go(func() { l.sweepTier(ctx) })
}
