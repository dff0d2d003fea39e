package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// watcher follows a cluster's metadata.
type watcher struct {
	store *meta.Store
	cache *meta.Cache
}

func watch(ctx context.Context, etcd string) (*watcher, error) {
	cfg, err := meta.ParseURL(etcd)
	if err != nil {
		return nil, err
	}
	s, err := meta.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	cache, err := s.Follow(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &watcher{s, cache}, nil
}

func (w *watcher) close() {
	w.cache.Close()
	_ = w.store.Close() // Nothing was written.
}

// takeover takes the times of a recovery's steps.
func (w *watcher) takeover(ctx context.Context, dead view.NodeID, killed time.Time, r *takeoverRound) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	of := recoveryOf(dead)
	gone := func(s *meta.Snapshot) bool { return len(s.Map.Ranges(dead)) == 0 }
	for _, step := range []struct {
		into *time.Duration
		done func(*meta.Snapshot) bool
	}{
		{&r.Detected, gone},
		{&r.Planned, func(s *meta.Snapshot) bool { rec, is := of(s); return gone(s) && (!is || rec.Plan != nil) }},
		{&r.Served, func(s *meta.Snapshot) bool { rec, is := of(s); return gone(s) && (!is || rec.Served()) }},
	} {
		if _, err := w.cache.Wait(ctx, step.done); err != nil {
			return fmt.Errorf("wait for the heirs of %s: %w", dead, err)
		}
		*step.into = time.Since(killed)
	}
	return nil
}

// recoveryOf finds a dead node's recovery, if it has not ended.
func recoveryOf(dead view.NodeID) func(s *meta.Snapshot) (meta.Recovery, bool) {
	return func(s *meta.Snapshot) (meta.Recovery, bool) {
		for _, rec := range s.Recoveries {
			if rec.Node == dead {
				return rec, true
			}
		}
		return meta.Recovery{}, false
	}
}

// copied waits until all that was taken over has its copies.
func (w *watcher) copied(ctx context.Context, dead view.NodeID) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := w.cache.Wait(ctx, func(s *meta.Snapshot) bool { rec, is := recoveryOf(dead)(s); return !is || rec.Done() })
	if err != nil {
		return fmt.Errorf("wait for copies of what %s had: %w", dead, err)
	}
	return nil
}
