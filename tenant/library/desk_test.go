package library

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoHadMuchCompiledWaitsForAllOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{free: 1}
		var order []string
		var all sync.WaitGroup
		install := func(s *Shelf, takes time.Duration) {
			all.Go(func() {
				must(t, d.enter(t.Context(), s))
				time.Sleep(takes)
				order = append(order, s.tenant)
				d.leave(s, takes)
			})
			synctest.Wait()
		}
		bad, worse := &Shelf{tenant: "bad"}, &Shelf{tenant: "worse"}
		install(bad, time.Second)
		install(worse, 2*time.Second)
		all.Wait()
		// One of them has the desk again when the others come: they wait for that one, and for none that is queued.
		install(bad, time.Second)
		install(worse, time.Second)
		install(bad, time.Second)
		for _, name := range []string{"anna", "bert"} {
			install(&Shelf{tenant: name}, time.Millisecond)
		}
		all.Wait()
		if want := []string{"bad", "worse", "bad", "anna", "bert", "bad", "worse"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
		time.Sleep(20 * forgetting)
		if got := bad.effort.now(time.Now()); got > time.Millisecond {
			t.Errorf("after long it still counts %v", got)
		}
	})
}

func TestWhoGivesUpWaitingForTheDeskLeavesItToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{free: 1}
		s := &Shelf{}
		must(t, d.enter(t.Context(), s))
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := make(chan error, 1), make(chan error, 1)
		go func() { gone <- d.enter(ctx, &Shelf{}) }()
		go func() { stays <- d.enter(t.Context(), &Shelf{}) }()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
		d.leave(s, 0)
		must(t, <-stays)
		d.leave(s, 0)
		if d.free != 1 || len(d.waiting) != 0 {
			t.Errorf("%d free, %d waiting", d.free, len(d.waiting))
		}
	})
}
