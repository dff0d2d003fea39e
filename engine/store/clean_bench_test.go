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
// cleaned after, and should keep half its speed. Large values are bound by the
// memory's and the disk's bandwidth, of which the cleaner takes its share.
func BenchmarkOverwrite(b *testing.B) {
	for _, size := range []int{100, 1000} {
		for _, live := range []int{30, 60, 85} {
			b.Run(fmt.Sprintf("%dB/%d%%", size, live), func(b *testing.B) { benchOverwrite(b, size, live) })
		}
	}
}

func benchOverwrite(b *testing.B, size, live int) {
	const memory = 1 << 30
	st := open(b, store.Options{
		Dir: b.TempDir(), Durability: store.EverySec, SegmentBytes: record.MaxSegmentBytes,
		MemoryBytes: memory, Policy: store.Refuse,
	})
	ss := session(b, st)
	ks := &keys{ss: ss}
	value := make([]byte, size)
	record := int(record.Size(30, size, false)) + 24 // and its share of the index
	count := uint64(memory * live / 100 / record)
	seed := uint64(1)
	random := func() uint64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return seed >> 33 % count
	}
	for n := uint64(0); n < count; n += benchRound {
		at := n
		overwrite(b, ss, ks, value, func() uint64 { at++; return at - 1 })
	}
	for n := uint64(0); n < count; n += benchRound {
		overwrite(b, ss, ks, value, random)
	}
	for n := 0; n < b.N; n += benchRound {
		if n == 0 {
			b.ResetTimer()
		}
		overwrite(b, ss, ks, value, random)
	}
	m := st.Metrics()
	b.ReportMetric(float64(m.RelocatedBytes)/float64(m.Writes)/float64(record), "copies/op")
	b.ReportMetric(100*float64(m.LiveBytes)/memory, "%live")
}

// benchRound is how many writes share a round, as those of a busy server do.
const benchRound = 16

// overwrite writes a round of keys, however often it has to wait for memory.
func overwrite(b *testing.B, ss *store.Session, ks *keys, value []byte, next func() uint64) {
	for done := 0; done < benchRound; {
		full := false
		ss.Begin()
		for ; done < benchRound && !full; done++ {
			k := ks.at(next())
			switch s := ss.Put(&k, store.Write{Value: value}, nil); s {
			case store.OK:
			case store.Cold:
				full = true
			default:
				b.Fatal(s, ss.Err())
			}
		}
		ss.Seal()
		ss.End()
		if full {
			if err := ss.Fetch(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
}
