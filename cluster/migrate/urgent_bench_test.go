package migrate

import (
	"fmt"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkSmallKey is how long an operation waits for a small key that is asked for with 63 large ones, and how long the last of those
// waits.
func BenchmarkSmallKey(b *testing.B) {
	const large = maxKeys - 1
	source := newStore(b)
	ss, err := source.NewSession()
	check(b, err)
	defer ss.Close()
	var list []store.ArrivingKey
	for i := range maxKeys {
		size := 1 << 20
		if i == large {
			size = 100
		}
		key := fmt.Append(nil, "key", i)
		ss.Begin()
		k := ss.Key(0, key)
		if s := ss.Put(&k, store.Write{Value: make([]byte, size)}, nil); s != store.OK {
			b.Fatal(s, ss.Err())
		}
		ss.Seal()
		ss.End()
		list = append(list, store.ArrivingKey{Place: record.PlaceOf(0, key), Bytes: key})
	}
	var small, last time.Duration
	for b.Loop() {
		b.StopTimer()
		p := pullsBetween(b, source, 20<<10, 1)
		came := make(chan time.Duration, maxKeys)
		smallCame := make(chan time.Duration, 1)
		b.StartTimer()
		began := time.Now()
		for i, k := range list {
			p.m.Want([]store.ArrivingKey{k}, func(error) {
				if i == large {
					smallCame <- time.Since(began)
				}
				came <- time.Since(began)
			})
		}
		for range list {
			last = max(last, <-came)
		}
		small = max(small, <-smallCame)
	}
	b.ReportMetric(float64(small.Microseconds())/1000, "small-ms")
	b.ReportMetric(float64(last.Microseconds())/1000, "last-ms")
}
