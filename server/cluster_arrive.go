package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/background"
)

// migrateRetry is the pause before another attempt.
const migrateRetry = 200 * time.Millisecond

// newDriver makes what carries out migrations to this node.
func (l *life) newDriver() *migrate.Driver {
	return migrate.New(migrate.Options{
		Self: l.self, Cache: l.cache, Member: l.ledger.current, Peers: l.pool, Store: l.store,
		Gate: landing{l}, Tier: l.tier, Taking: &l.taking, Roster: l.primary.Load().RosterNumber,
		PullBytes: int(l.cfg.MigratePullBytes), Partitions: l.cfg.MigratePartitions, Rate: int64(l.cfg.MigrateRate), SharedMemory: l.cfg.MigrateShared,
		HaltAt: migrate.Step(l.cfg.MigrateHaltAt), HaltDir: l.cfg.MigrateHaltDir, Log: l.log.With(slog.String("part", "migrate")),
	})
}

// haltAt halts this node as a source, if a test wants it.
func (l *life) haltAt(ctx context.Context, step migrate.Step) error {
	return migrate.Halts{Self: l.self, Dir: l.cfg.MigrateHaltDir}.Here(ctx, step, func(s migrate.Step) {
		l.log.Warn("this node halts here, as it was told to", "step", string(s))
	})
}

// haltReturn is haltAt for a source that is about to replay what a return has left to it.
func (l *life) haltReturn(ctx context.Context, ranges view.Ranges) error {
	for _, r := range l.cache.Snapshot().Returns {
		for _, p := range r.Parts {
			if p.Heir == l.self && !p.Done && len(p.Ranges.Intersect(ranges)) > 0 {
				return l.haltAt(ctx, migrate.Replaying)
			}
		}
	}
	return nil
}

// landing is the gate as the driver needs it.
type landing struct{ *life }

// Open serves ranges that arrive.
func (d landing) Open(ranges view.Ranges) { d.gate.open(d.cache.Snapshot(), ranges) }

// Expect has operations wait on ranges that are about to change hands.
func (d landing) Expect(ranges view.Ranges) { d.gate.expect(ranges) }

// Unexpect takes Expect back. What is known by then is shown first.
func (d landing) Unexpect(ranges view.Ranges) {
	d.gate.show(d.cache.Snapshot())
	d.gate.unexpect(ranges)
}

// Shut has operations on them wait again, and returns when none is under way.
func (d landing) Shut(ctx context.Context, ranges view.Ranges) (record.BatchID, error) {
	d.gate.shut(ranges)
	return d.cut(ctx)
}

// retract drops what others have now, for as long as the life lasts, and says so: only then may the node be
// given it again. That takes minutes if much of it is cold.
func (l *life) retract(ctx context.Context) {
	for ctx.Err() == nil {
		changed := l.cache.Changed()
		s := l.cache.Snapshot()
		l.store.ArrivedBut(func() []store.Range { return migrate.Ranges(l.cache.Snapshot().Unsettled(l.self)) })
		if gone := s.Leaving(l.self); len(gone) > 0 {
			if err := l.drop(ctx, gone); err != nil && ctx.Err() == nil {
				l.log.Warn("what others have now was not dropped; it is tried again", "why", err)
				background.Pause(ctx, migrateRetry)
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// returns tells whether a node returns what it got.
func returns(s *meta.Snapshot, n view.NodeID) bool {
	for _, r := range s.Returns {
		if r.Node == n {
			return true
		}
	}
	return false
}

// drop takes ranges out of the store that were seen to have left, and has what its log says of them count no more.
func (l *life) drop(ctx context.Context, seen view.Ranges) error {
	if err := l.haltAt(ctx, migrate.Dropping); err != nil {
		return err
	}
	member, err := l.ledger.current()
	if err != nil {
		return err
	}
	// If an attempt before this one was noted, and only its answer was lost, they may be this node's again by now.
	gone, err := member.StillLeaving(ctx, seen)
	if err != nil || len(gone) == 0 {
		return err
	}
	// The gate must be as new as what says that they have left, and nobody at work on them.
	l.gate.show(l.cache.Snapshot())
	if _, err := l.cut(ctx); err != nil {
		return err
	}
	if err := l.quietCopies(ctx, gone); err != nil {
		return err
	}
	if err := l.store.Retract(ctx, migrate.Ranges(gone)); err != nil {
		return err
	}
	batch, segment, err := l.store.SettledPosition(ctx)
	if err != nil {
		return err
	}
	if err := member.Retracted(ctx, gone, batch, segment); err != nil {
		return err
	}
	l.log.Info("this node has dropped what others have now", "share", gone.Fraction())
	_, err = l.cache.Wait(ctx, func(s *meta.Snapshot) bool { return len(s.Leaving(l.self).Intersect(gone)) == 0 })
	return err
}
