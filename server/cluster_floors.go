package server

import (
	"context"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// floorsEvery is how often floors are looked at. They cost little, and go when the cleaner has come by.
const floorsEvery = 30 * time.Second

// dropFloors has the cluster forget floors of this node's log that nothing lies below any more, for as
// long as it is a member.
func (l *life) dropFloors(ctx context.Context, m *meta.Member) {
	select {
	case <-l.opened:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		oldest := l.store.Oldest()
		if spent(l.cache.Snapshot().Logs[l.id.Log].Floors, oldest) {
			if err := m.DropFloors(ctx, oldest); err != nil && ctx.Err() == nil {
				l.log.Debug("floors of the log were not dropped; it is tried again", "why", err)
			}
		}
		background.Pause(ctx, floorsEvery)
	}
}

// spent tells whether one of the floors has nothing below it.
func spent(floors []meta.Floor, oldest record.SegmentID) bool {
	return slices.ContainsFunc(floors, func(f meta.Floor) bool { return f.Segment <= oldest })
}
