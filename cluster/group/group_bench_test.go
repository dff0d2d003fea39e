package group_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
)

// BenchmarkWrite is a gWRITE of 128 bytes, one at a time, with NIC and replicas in
// processes of their own.
func BenchmarkWrite(b *testing.B) {
	for _, mode := range []group.Mode{group.Chain, group.NaiveEvents, group.FanOut} {
		for _, n := range []int{3, 7} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				a, data := newApart(b, group.Spec{Mode: mode}, n), make([]byte, 128)
				ctx, took := a.ctx(), make([]time.Duration, 0, b.N+1)
				for b.Loop() {
					began := time.Now()
					p := must(a.g.Write(ctx, 0, data))(b)
					must(p.Wait(ctx))(b)
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
			})
		}
	}
}

// BenchmarkPipeline is gWRITEs of 128 bytes by some goroutines, each with some in flight.
func BenchmarkPipeline(b *testing.B) {
	for _, by := range []struct{ goroutines, inFlight int }{{1, 32}, {8, 1}, {8, 4}} {
		b.Run(fmt.Sprintf("%dx%d", by.goroutines, by.inFlight), func(b *testing.B) {
			a, data := newApart(b, group.Spec{}, 3), make([]byte, 128)
			ctx := a.ctx()
			var all sync.WaitGroup
			b.ResetTimer()
			for range by.goroutines {
				all.Go(func() {
					var flying []*group.Pending
					for range b.N / by.goroutines {
						flying = append(flying, must(a.g.Write(ctx, 0, data))(b))
						if len(flying) == by.inFlight {
							must(flying[0].Wait(ctx))(b)
							flying = flying[1:]
						}
					}
					for _, p := range flying {
						must(p.Wait(ctx))(b)
					}
				})
			}
			all.Wait()
		})
	}
}
