package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkOverwrite overwrites random records of a logged store whose live
// data takes a share of the memory it may have: at 85 % every write has to be
// cleaned after, and should keep half its speed.
func BenchmarkOverwrite(b *testing.B) {
	const memory = 1 << 30
	for _, live := range []int{30, 60, 85} {
		b.Run(fmt.Sprint(live, "%"), func(b *testing.B) {
			st := open(b, store.Options{
				Dir: b.TempDir(), Durability: store.EverySec, SegmentBytes: record.MaxSegmentBytes,
				MemoryBytes: memory, Policy: store.Refuse,
			})
			ss := session(b, st)
			ks := &keys{ss: ss}
			value := make([]byte, 1000)
			count := uint64(memory * live / 100 / 1100)
			put := func(n uint64) {
				k := ks.at(n)
				for {
					ss.Begin()
					s := ss.Put(&k, store.Write{Value: value}, nil)
					ss.Seal()
					ss.End()
					if s == store.OK {
						return
					}
					if s != store.Cold {
						b.Fatal(s, ss.Err(), st.Metrics())
					}
					if err := ss.Fetch(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			}
			for n := range count {
				put(n)
			}
			seed := uint64(1)
			next := func() uint64 {
				seed = seed*6364136223846793005 + 1442695040888963407
				return seed >> 33 % count
			}
			for range count {
				put(next())
			}
			for b.Loop() {
				put(next())
			}
			m := st.Metrics()
			b.ReportMetric(float64(m.RelocatedBytes)/float64(m.Writes)/1056, "copies/op")
			b.ReportMetric(100*float64(m.LiveBytes)/memory, "%live")
		})
	}
}
