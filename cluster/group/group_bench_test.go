package group_test

import (
	"fmt"
	"slices"
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
