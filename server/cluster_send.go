package server

import (
	"context"
	"fmt"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/engine/store"
)

// owners are the nodes that have places whose cold records are still in this node's log.
func (l *life) owners() (all []store.Owner) {
	select {
	case <-l.opened:
	default:
		return nil // The store is being opened.
	}
	if !l.gate.Alive() {
		return nil
	}
	for _, m := range l.cache.Snapshot().Outgoing(l.self) {
		if m.Settling() && m.SourceLog == l.id.Log && m.Options.Indirect() {
			all = append(all, store.Owner{
				ID: m.ID, Ranges: migrate.Ranges(m.Ranges),
				Send: func(ctx context.Context, p store.Parcel, drop func()) error { return l.send(ctx, m, p, drop) },
			})
		}
	}
	return all
}

// send gives the target of a migration records that this node still has of it, and has them dropped here.
//
// The target may have died since, or returned the ranges, and this node may be about to replay its log: what the replay finds
// here it passes over. So nothing is dropped unless the migration still goes on as far as is known here, and none begins
// meanwhile.
func (l *life) send(ctx context.Context, m meta.Migration, p store.Parcel, drop func()) error {
	if err := l.yield(ctx, m); err != nil {
		return err
	}
	if err := migrate.Send(ctx, l.pool, m.Target, m.ID, p); err != nil {
		return err
	}
	l.taking.Lock()
	defer l.taking.Unlock()
	if now := l.cache.Snapshot().Migrations[m.ID]; now.Stage != meta.Moving || now.SourceLog != l.id.Log {
		return fmt.Errorf("migration %d is %s", m.ID, now.Stage)
	}
	drop()
	return nil
}

// drives is what drives migrations to this node now.
func (h *host) drives() *migrate.Driver {
	if l := h.life.Load(); l != nil {
		return l.driver.Load()
	}
	return nil
}
