package server

import (
	"context"
	"sync/atomic"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// ledger writes what a primary must have written, as the member that the node is at the time.
type ledger struct{ member atomic.Pointer[meta.Member] }

func (l *ledger) current() (*meta.Member, error) {
	if m := l.member.Load(); m != nil {
		return m, nil
	}
	return nil, meta.ErrLeaseLost
}

func (l *ledger) with(f func(*meta.Member) error) error {
	m, err := l.current()
	if err != nil {
		return err
	}
	return f(m)
}

// AddBackup notes that a node may hold replicas that are needed.
func (l *ledger) AddBackup(ctx context.Context, n view.NodeID) error {
	return l.with(func(m *meta.Member) error { return m.AddBackup(ctx, n) })
}

// Exclude notes that none is needed there any more.
func (l *ledger) Exclude(ctx context.Context, n view.NodeID) error {
	return l.with(func(m *meta.Member) error { return m.ExcludeBackup(ctx, n) })
}

// RaiseVersion makes open replicas of lower versions stale, and returns the new one.
func (l *ledger) RaiseVersion(ctx context.Context) (v uint64, err error) {
	err = l.with(func(m *meta.Member) error {
		v, err = m.RaiseReplicaVersion(ctx)
		return err
	})
	return v, err
}

// SetCopies notes how many backups each segment has, at least.
func (l *ledger) SetCopies(ctx context.Context, copies int) error {
	return l.with(func(m *meta.Member) error { return m.SetCopies(ctx, copies) })
}
