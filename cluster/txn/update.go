package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Tx is a transaction that changes data, under write locks.
type Tx struct {
	log     *Log
	ctx     context.Context
	entries []Entry
}

// Update runs fn with locks held for writing on all replicas, and makes the
// changes it asked for, all or nothing. When Update returns without an error they are
// durable on all replicas, and whoever takes one of the locks from then on, on
// any replica, reads them. Locks are taken in ascending order, each once; fn
// must not take others.
//
// An error of fn, or ErrTooLarge, means that nothing was changed. With
// Config.Background, Update returns when the record is in all logs, and the locks are
// released when it is executed.
func (l *Log) Update(ctx context.Context, locks []int, fn func(tx *Tx) error) error {
	held, err := l.lockAll(ctx, locks)
	if err != nil {
		return err
	}
	p, err := held.run(ctx, fn)
	if p == nil {
		return err
	}
	return held.settle(ctx, p)
}

// run calls fn and appends what it wants. Nothing on its way means that nothing
// is changed, and that the locks are released.
func (h *holding) run(ctx context.Context, fn func(tx *Tx) error) (p *Pending, err error) {
	defer func() {
		if p == nil { // Also when fn panics.
			err = errors.Join(err, h.release())
		}
	}()
	tx := &Tx{log: h.log, ctx: ctx}
	if err := fn(tx); err != nil || len(tx.entries) == 0 {
		return nil, err
	}
	return h.log.Append(ctx, tx.entries...)
}

// settle waits for a record as long as the caller wants to, and sees to it that the
// locks are released when it is executed, and not before.
func (h *holding) settle(ctx context.Context, p *Pending) error {
	err := p.Wait(ctx)
	if err == nil && !h.log.conf.Background {
		if err = h.log.executeThrough(ctx, p.end); err == nil {
			return h.release()
		}
	}
	h.log.later(func() { _ = h.finish(p) })
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("txn: the transaction goes on, and nobody waits for it: %w", err)
	}
	return err
}

// Write asks for data at an offset of the data area. The data is copied.
func (tx *Tx) Write(off uint64, data []byte) {
	tx.entries = append(tx.entries, Entry{off, slices.Clone(data)})
}

// Read reads the data area as the transaction will leave it, as far as it has come.
func (tx *Tx) Read(off uint64, buf []byte) error {
	if err := tx.log.Read(tx.ctx, 0, off, buf); err != nil {
		return err
	}
	for _, e := range tx.entries {
		overlay(off, buf, e)
	}
	return nil
}

// overlay puts the part of an entry that lies in a buffer there.
func overlay(off uint64, buf []byte, e Entry) {
	from, to := max(off, e.Offset), min(off+uint64(len(buf)), e.Offset+uint64(len(e.Data)))
	if from < to {
		copy(buf[from-off:to-off], e.Data[from-e.Offset:])
	}
}

// holding is locks held for writing.
type holding struct {
	log   *Log
	owner Owner
	locks []int
}

func (l *Log) lockAll(ctx context.Context, locks []int) (*holding, error) {
	h := &holding{log: l, owner: l.NewOwner()}
	for _, lock := range ascending(locks) {
		if err := l.WrLock(ctx, h.owner, lock); err != nil {
			return nil, errors.Join(err, h.release())
		}
		h.locks = append(h.locks, lock)
	}
	return h, nil
}

func ascending(locks []int) []int {
	locks = slices.Clone(locks)
	slices.Sort(locks)
	return slices.Compact(locks)
}

// release gives all back, the last one first.
func (h *holding) release() error {
	var errs []error
	for _, lock := range slices.Backward(h.locks) {
		errs = append(errs, h.log.WrUnlock(h.log.ctx, h.owner, lock))
	}
	return errors.Join(errs...)
}

// finish releases the locks when a record is executed, and not before.
func (h *holding) finish(p *Pending) error {
	if err := p.Wait(h.log.ctx); err != nil {
		return err
	}
	var err error
	if h.log.conf.Background {
		err = p.WaitExecuted(h.log.ctx)
	} else {
		err = h.log.executeThrough(h.log.ctx, p.end)
	}
	if err != nil {
		return err // The log has ended; whoever initializes the group again breaks the locks.
	}
	return h.release()
}

// later runs what must happen though nobody waits for it, before Close returns.
func (l *Log) later(f func()) {
	if l.enter() != nil {
		return
	}
	go func() {
		defer l.runs.Done()
		f()
	}()
}
