package txn_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/txn"
)

// word is a lock's word on a replica.
func (s *scene) word(replica, lock int) uint64 {
	return binary.LittleEndian.Uint64(s.mems[replica].Bytes()[128+8*lock:])
}

// refused tells whether a call waits for something that does not come.
func refused(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := call(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("it ended with %v", err)
	}
}

func TestWritersExcludeEachOtherAndAllReaders(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8}, 3)
	ctx, a, b := s.ctx(), s.l.NewOwner(), s.l.NewOwner()
	check(t, s.l.WrLock(ctx, a, 5))
	refused(t, func(ctx context.Context) error { return s.l.WrLock(ctx, b, 5) })
	for i := range 3 {
		refused(t, func(ctx context.Context) error { return s.l.RdLock(ctx, i, 5) })
	}
	check(t, s.l.WrLock(ctx, b, 6))
	if err := s.l.WrUnlock(ctx, b, 5); !errors.Is(err, txn.ErrNotHeld) {
		t.Fatalf("another's lock is released: %v", err)
	}
	check(t, s.l.WrUnlock(ctx, a, 5))
	check(t, s.l.WrLock(ctx, b, 5))
	check(t, s.l.Break(ctx, b))
	for lock := range 8 {
		for i := range 3 {
			check(t, s.l.RdLock(ctx, i, lock))
		}
	}
}

func TestReadersShareAndKeepWritersFromAllReplicas(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8}, 3)
	ctx, o := s.ctx(), s.l.NewOwner()
	free := s.word(0, 2)
	for range 3 {
		check(t, s.l.RdLock(ctx, 1, 2))
	}
	refused(t, func(ctx context.Context) error { return s.l.WrLock(ctx, o, 2) })
	for i, want := range []uint64{free, free + 3, free} {
		if got := s.word(i, 2); got != want {
			t.Fatalf("after a refused writer, the word of replica %d is %x, not %x", i, got, want)
		}
	}
	for range 3 {
		check(t, s.l.RdUnlock(ctx, 1, 2))
	}
	if err := s.l.RdUnlock(ctx, 1, 2); !errors.Is(err, txn.ErrNotHeld) {
		t.Fatalf("released once too often: %v", err)
	}
	check(t, s.l.WrLock(ctx, o, 2))
	check(t, s.l.WrUnlock(ctx, o, 2))
}

func TestAWriterGetsItsTurnThoughReadersNeverCease(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8}, 2)
	ctx, cancel := context.WithCancel(s.ctx())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { // Pairs that hand the lock to each other.
			for ctx.Err() == nil {
				if err := s.l.RdLock(ctx, i%2, 0); err == nil {
					check(t, s.l.RdUnlock(context.WithoutCancel(ctx), i%2, 0))
				}
			}
		})
	}
	o := s.l.NewOwner()
	for range 20 {
		check(t, s.l.WrLock(s.ctx(), o, 0))
		check(t, s.l.WrUnlock(s.ctx(), o, 0))
	}
	cancel()
	wg.Wait()
}

func TestAWriterThatGivesUpLetsReadersInAgain(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8}, 2)
	check(t, s.l.RdLock(s.ctx(), 1, 0))
	ctx, cancel := context.WithCancel(s.ctx())
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- s.l.WrLock(ctx, s.l.NewOwner(), 0) }()
	marked := func() bool { return s.word(1, 0)>>62 == 1 }
	for !marked() { // The word is another mapping's; there is nothing else to wait on.
		check(t, s.ctx().Err())
	}
	refused(t, func(ctx context.Context) error { return s.l.RdLock(ctx, 1, 0) })
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	check(t, s.l.RdLock(s.ctx(), 1, 0))
}

func TestAPanicReleasesTheLocks(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8}, 2)
	func() {
		defer func() { _ = recover() }()
		_ = s.l.Update(s.ctx(), []int{1, 2}, func(*txn.Tx) error { panic("of the caller") })
	}()
	check(t, s.l.Update(s.ctx(), []int{2, 1}, func(tx *txn.Tx) error { return nil }))
}

func TestOpposedLocksDoNotDeadlock(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8}, 2)
	var wg sync.WaitGroup
	var total atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			locks := []int{i % 3, (i + 1) % 3, (i + 2) % 3, i % 3}
			for range 20 {
				err := s.l.Update(s.ctx(), locks, func(tx *txn.Tx) error {
					total.Add(1)
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if total.Load() != 160 {
		t.Fatalf("%d transactions ran", total.Load())
	}
}
