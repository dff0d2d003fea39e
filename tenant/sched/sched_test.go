package sched_test

import (
	"sync"
	"testing"

	"github.com/ostrodb/ostro/tenant/sched"
)

func TestEveryTurnThatWasTakenEnds(t *testing.T) {
	s := sched.New(sched.Options{Workers: 2, Queue: 100000})
	var wg sync.WaitGroup
	for i := range 20 {
		sh := s.NewShare("t", sched.Limits{})
		for range 500 {
			wg.Add(1)
			if err := s.Go(sh, func(t *sched.Turn) {
				defer wg.Done()
				for range i {
					_ = t.Yield(sched.SliceEnd)
					_ = t.Yield(sched.StoreUse)
				}
				t.Wait(func() {})
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	wg.Wait()
	t.Logf("%+v", s.Metrics())
	s.Close()
}
