package meta

import (
	"math"
	"testing"

	"github.com/ostrodb/ostro/internal/clock"
)

// What a front door pays per batch of requests.
func BenchmarkAlive(b *testing.B) {
	l := &Lease{now: clock.SinceBoot}
	l.deadline.Store(math.MaxInt64)
	for b.Loop() {
		if !l.Alive() {
			b.Fatal("dead")
		}
	}
}
