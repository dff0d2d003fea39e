package epoch

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func register(t testing.TB, table *Table) *Guard {
	t.Helper()
	g, err := table.Register()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestDeferredActionWaitsForEveryGuardThatWasInside(t *testing.T) {
	table := New(4)
	a, b, late := register(t, table), register(t, table), register(t, table)
	a.Enter()
	b.Enter()
	runs := 0
	table.Defer(func() { runs++ })
	late.Enter() // after the bump: it holds nothing up

	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"nobody has moved", func() { table.Drain() }, 0},
		{"one of two has left", a.Leave, 0},
		{"it enters again", a.Enter, 0},
		{"a drain finds the other one", func() { table.Drain() }, 0},
		{"the other one refreshes", b.Refresh, 1},
		{"a later drain", func() { table.Drain() }, 1},
		{"all leave", func() { a.Leave(); b.Leave(); late.Leave() }, 1},
	} {
		step.do()
		if runs != step.want {
			t.Fatalf("%s: action ran %d times, want %d", step.name, runs, step.want)
		}
	}
	if n := table.Pending(); n != 0 {
		t.Fatalf("%d actions pending, want none", n)
	}
}

func TestDeferNeverRunsTheActionItself(t *testing.T) {
	table := New(1)
	ran := false
	table.Defer(func() { ran = true })
	if ran {
		t.Fatal("ran within Defer, where the caller may hold locks")
	}
	if n := table.Drain(); n != 1 || !ran {
		t.Fatalf("drain ran %d actions, want 1", n)
	}
}

func TestAGuardThatHeldNothingUpFindsForgottenActionsInTime(t *testing.T) {
	table := New(1)
	g := register(t, table)
	ran := false
	table.Defer(func() { ran = true }) // while nobody is inside
	for range looksEvery {
		g.Enter()
		g.Leave()
	}
	if !ran {
		t.Fatalf("not run after %d rounds", looksEvery)
	}
}

func TestActionsRunOnceAndInOrder(t *testing.T) {
	table := New(8)
	const writers, each = 4, 2000
	var mu sync.Mutex // makes the order of deferral known
	var deferred int
	var order []int // belongs to the drainer
	var wg sync.WaitGroup
	for range writers {
		g := register(t, table)
		wg.Go(func() {
			for range each {
				g.Enter()
				mu.Lock()
				n := deferred
				deferred++
				table.Defer(func() { order = append(order, n) })
				mu.Unlock()
				g.Leave()
			}
		})
	}
	wg.Wait()
	table.Drain()
	if len(order) != writers*each {
		t.Fatalf("%d actions ran, want %d", len(order), writers*each)
	}
	for i, n := range order {
		if i != n {
			t.Fatalf("action %d ran as number %d", n, i)
		}
	}
}

func TestTheLastOfManyLeavingGuardsRunsTheAction(t *testing.T) {
	const guards = 4
	table := New(guards)
	var all [guards]*Guard
	for i := range all {
		all[i] = register(t, table)
	}
	for round := range 3000 {
		for _, g := range all {
			g.Enter()
		}
		var ran atomic.Int64
		table.Defer(func() { ran.Add(1) })
		var wg sync.WaitGroup
		for _, g := range all {
			wg.Go(g.Leave)
		}
		wg.Wait()
		if ran.Load() != 1 || table.Pending() != 0 {
			t.Fatalf("round %d: ran %d times, %d pending", round, ran.Load(), table.Pending())
		}
	}
}

// object's field is plain on purpose: if a release ran while a reader could
// still hold the object, the race detector would see it too.
type object struct{ freed bool }

func TestNothingIsFreedWhileAGuardCanSeeIt(t *testing.T) {
	const readers, writers, swaps = 3, 2, 20_000
	table := New(readers + writers)
	var shared atomic.Pointer[object]
	shared.Store(&object{})
	var done atomic.Bool
	var freed atomic.Int64
	var reading, writing sync.WaitGroup
	for r := range readers {
		g := register(t, table)
		reading.Go(func() {
			g.Enter()
			for i := 0; !done.Load(); i++ {
				if shared.Load().freed {
					t.Error("a guard sees a freed object")
					break
				}
				if i%(r+2) == 0 {
					g.Refresh()
				} else {
					g.Leave()
					g.Enter()
				}
			}
			g.Leave()
		})
	}
	for range writers {
		g := register(t, table)
		writing.Go(func() {
			for range swaps {
				g.Enter()
				old := shared.Swap(&object{})
				if old.freed {
					t.Error("a freed object was still linked")
				}
				table.Defer(func() { old.freed = true; freed.Add(1) })
				g.Leave()
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	table.Drain()
	if got := freed.Load(); got != writers*swaps {
		t.Fatalf("%d of %d objects freed", got, writers*swaps)
	}
}

func TestCutActsOnlyOnceEveryGuardKnowsTheNewState(t *testing.T) {
	const workers, cuts = 3, 500
	table := New(workers)
	var state, passed atomic.Int64
	var done atomic.Bool
	var wg sync.WaitGroup
	for range workers {
		g := register(t, table)
		wg.Go(func() {
			for !done.Load() {
				g.Enter()
				if mine, cut := state.Load(), passed.Load(); mine < cut {
					t.Errorf("a worker acts on state %d after the cut to %d", mine, cut)
				}
				g.Leave()
				runtime.Gosched() // outside, so that cuts do not wait for the scheduler
			}
		})
	}
	for i := range int64(cuts) {
		state.Store(i + 1)
		table.Cut(func() { passed.Store(i + 1) })
		for passed.Load() != i+1 {
			table.Drain()
			runtime.Gosched()
		}
	}
	done.Store(true)
	wg.Wait()
}

func TestWaitReturnsWhenTheGuardsInsideHaveLeft(t *testing.T) {
	table := New(2)
	g := register(t, table)
	g.Enter()
	before := table.Current()
	waited := make(chan error)
	go func() { waited <- table.Wait(context.Background()) }()
	for table.Current() == before { // until Wait has bumped
		runtime.Gosched()
	}
	select {
	case <-waited:
		t.Fatal("returned while a guard was inside")
	default:
	}
	g.Leave()
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
}

func TestWaitGivesUpWithItsContext(t *testing.T) {
	table := New(1)
	g := register(t, table)
	g.Enter()
	defer g.Leave()
	ctx, cancel := context.WithCancel(context.Background())
	waited := make(chan error)
	go func() { waited <- table.Wait(ctx) }()
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestSlotsAreLimitedAndReused(t *testing.T) {
	table := New(2)
	a, _ := register(t, table), register(t, table)
	if _, err := table.Register(); !errors.Is(err, ErrFull) {
		t.Fatalf("third guard of two: %v", err)
	}
	a.Enter()
	ran := false
	table.Defer(func() { ran = true })
	a.Unregister() // leaves, too
	if !ran {
		t.Fatal("a guard that is gone still protects")
	}
	register(t, table)
}

func TestSafeIsTheOldestEpochInside(t *testing.T) {
	table := New(2)
	old, young := register(t, table), register(t, table)
	old.Enter()
	entered := table.Current()
	e := table.Bump()
	young.Enter()
	if got := table.Safe(); got != entered {
		t.Fatalf("safe is %d with a guard inside since %d", got, entered)
	}
	old.Leave()
	if got := table.Safe(); got != e {
		t.Fatalf("safe is %d, want %d", got, e)
	}
	young.Leave()
	if got, want := table.Safe(), table.Current(); got != want {
		t.Fatalf("safe is %d with nobody inside, want %d", got, want)
	}
}
