package meta

import (
	"context"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// AddBackup notes that a node may hold replicas of this node's log. A primary calls
// it before it sends the first.
func (m *Member) AddBackup(ctx context.Context, n view.NodeID) error {
	return m.changeLog(ctx, func(l *Log) error {
		if n == m.Node.ID {
			return fmt.Errorf("%s cannot be its own backup", n)
		}
		if !slices.Contains(l.Backups, n) {
			l.Backups = append(slices.Clone(l.Backups), n)
		}
		return nil
	})
}

// ExcludeBackup notes that no recovery needs a node's replicas of this node's log: each of
// its segments has Copies others.
func (m *Member) ExcludeBackup(ctx context.Context, n view.NodeID) error {
	return m.changeLog(ctx, func(l *Log) error {
		l.Backups = slices.DeleteFunc(slices.Clone(l.Backups), func(b view.NodeID) bool { return b == n })
		return nil
	})
}

// SetCopies notes how many backups every segment of this node's log has. A primary lowers
// it before it has fewer, and raises it after it has more.
func (m *Member) SetCopies(ctx context.Context, n int) error {
	return m.changeLog(ctx, func(l *Log) error {
		if n < 0 {
			return fmt.Errorf("a segment cannot have %d copies", n)
		}
		l.Copies = n
		return nil
	})
}

// Ledger is what etcd says of this node's log.
func (m *Member) Ledger(ctx context.Context) (Log, error) {
	seen, err := m.store.Read(ctx)
	if err != nil {
		return Log{}, err
	}
	if err := m.store.stands(&m.fence, seen); err != nil {
		return Log{}, err
	}
	return seen.Logs[m.Node.Log], nil
}

// changeLog writes the log in any case, also as it was: one that was written before, and whose answer did not come, may
// still be on its way to etcd, and must not get there after this one.
func (m *Member) changeLog(ctx context.Context, f func(*Log) error) error {
	return m.change(ctx, func(e *edit) error {
		l := e.seen.Logs[m.Node.Log]
		if err := f(&l); err != nil {
			return err
		}
		return e.put(keyLog(m.Node.Log), l)
	})
}
