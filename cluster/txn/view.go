package txn

import (
	"context"
	"errors"
	"slices"
)

// Snapshot reads one replica's data under read locks.
type Snapshot struct {
	log     *Log
	ctx     context.Context
	replica int
}

// Read reads the data area.
func (s *Snapshot) Read(off uint64, buf []byte) error {
	return s.log.Read(s.ctx, s.replica, off, buf)
}

// View runs fn with locks held for reading on one replica. What it reads there,
// of the data that the locks stand for, is of one moment and has all
// transactions whose Update had returned before.
func (l *Log) View(ctx context.Context, replica int, locks []int, fn func(s *Snapshot) error) (err error) {
	var held []int
	defer func() {
		for _, lock := range slices.Backward(held) {
			err = errors.Join(err, l.RdUnlock(context.WithoutCancel(ctx), replica, lock))
		}
	}()
	for _, lock := range ascending(locks) {
		if err := l.RdLock(ctx, replica, lock); err != nil {
			return err
		}
		held = append(held, lock)
	}
	return fn(&Snapshot{l, ctx, replica})
}
