package sched

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkGo is a call that does nothing, one after the other.
func BenchmarkGo(b *testing.B) {
	s := New(Options{})
	defer s.Close()
	share := s.NewShare("a", Limits{})
	done := make(chan struct{}, 1)
	f := func(*Turn) { done <- struct{}{} }
	b.ReportAllocs()
	for b.Loop() {
		if err := share.Go(f); err != nil {
			b.Fatal(err)
		}
		<-done
	}
}

// BenchmarkYield is what the end of a slice costs: alone, and with others that wait.
func BenchmarkYield(b *testing.B) {
	for name, others := range map[string]int{"alone": 0, "with-3-others": 3} {
		for reason, why := range map[string]Reason{"slice": SliceEnd, "store": StoreUse} {
			b.Run(reason+"/"+name, func(b *testing.B) {
				s := New(Options{Workers: 1, LongAfter: never, StuckAfter: never, Deadline: never})
				defer s.Close()
				stop := make(chan struct{})
				var all sync.WaitGroup
				for range others {
					all.Add(1)
					must(b, s.NewShare("other", Limits{}).Go(func(u *Turn) {
						defer all.Done()
						for {
							select {
							case <-stop:
								return
							default:
								_ = u.Yield(why)
							}
						}
					}))
				}
				all.Add(1)
				must(b, s.NewShare("a", Limits{}).Go(func(u *Turn) {
					defer all.Done()
					defer close(stop)
					for b.Loop() {
						_ = u.Yield(why)
					}
				}))
				all.Wait()
			})
		}
	}
}

// BenchmarkShortBesideLong is how long short calls take while eight others compute without end, in slices of 50 us.
func BenchmarkShortBesideLong(b *testing.B) {
	for name, long := range map[string]int{"alone": 0, "beside-8-long": 8} {
		b.Run(name, func(b *testing.B) {
			s := New(Options{Deadline: never})
			defer s.Close()
			greedy, share := s.NewShare("greedy", Limits{}), s.NewShare("short", Limits{})
			for range long {
				must(b, greedy.Go(func(u *Turn) {
					for u.Yield(SliceEnd) == nil {
						for began := time.Now(); time.Since(began) < 50*time.Microsecond; {
						}
					}
				}))
			}
			done := make(chan struct{}, 1)
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				must(b, share.Go(func(*Turn) { done <- struct{}{} }))
				<-done
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
			b.ReportMetric(float64(took[len(took)*999/1000].Nanoseconds()), "p99.9-ns")
		})
	}
}
