package txn_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
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

// Who waits for a lock of a transaction whose group breaks is told, too: the lock
// is released by nobody.
func TestWhoWaitsForALockHearsThatTheGroupIsBroken(t *testing.T) {
	s := newScene(t, small, plain, 1)
	first, second := make(chan error, 1), make(chan error, 1)
	update := func(ended chan error, began func()) {
		ended <- s.l.Update(s.ctx(), []int{0}, func(tx *txn.Tx) error {
			began()
			tx.Write(0, []byte("x"))
			return nil
		})
	}
	has, go1 := make(chan struct{}), make(chan struct{})
	go update(first, func() { close(has); <-go1 })
	<-has
	go update(second, func() {})
	for s.l.Waiting(0) < 2 {
		runtime.Gosched()
	}
	check(t, s.net.Hold(loop(s.spies[0])))
	close(go1)
	for n, _ := s.l.Unexecuted(); n == 0; n, _ = s.l.Unexecuted() {
		runtime.Gosched()
	}
	check(t, s.spies[0].Close())
	for _, ended := range []chan error{first, second} {
		if err := <-ended; !errors.Is(err, group.ErrBroken) {
			t.Errorf("it ends with %v", err)
		}
	}
}

// A writer of a closed log still waits when the next log of the group begins.
func TestAWriterOfAnEarlierLogLeavesNoMark(t *testing.T) {
	s := newScene(t, small, plain, 2)
	old := s.l
	check(t, old.RdLock(s.ctx(), 0, 0))
	ended := make(chan error, 1)
	go func() { ended <- old.WrLock(s.ctx(), 1, 0) }()
	for s.word(0, 0)&(1<<62) == 0 { // It has said that it waits.
		runtime.Gosched()
	}
	check(t, old.Close())
	s.l = must(txn.Initialize(s.ctx(), s.g, plain))(t)
	if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the writer ends with %v", err)
	}
	check(t, s.l.WrLock(s.ctx(), 1, 0))
	check(t, s.l.Close())
}

func TestNobodyIsNeverGivenOutAsAnOwner(t *testing.T) {
	s := newScene(t, small, plain, 1)
	s.l.LastOwner(math.MaxUint32)
	put(s, 0, "after four billion")
}
