package store_test

import (
	"encoding/binary"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkHot measures what an operation costs when nothing misses a cache:
// instructions, which also decide how many operations' misses can overlap.
func BenchmarkHot(b *testing.B) {
	const n = 4096
	st := open(b, store.Options{})
	ss := session(b, st)
	raw := make([]byte, n*8)
	ks := make([]store.Key, n)
	value := make([]byte, 8)
	for i := range n {
		key := raw[i*8 : i*8+8]
		binary.LittleEndian.PutUint64(key, uint64(i))
		ks[i] = ss.Key(0, key)
		ss.Begin()
		if s := ss.Put(&ks[i], store.Write{Value: value}, nil); s != store.OK {
			b.Fatal(s, ss.Err())
		}
		ss.Seal()
		ss.End()
	}
	b.Run("key", func(b *testing.B) {
		i, k := 0, store.Key{}
		for b.Loop() {
			ss.Name(&k, 0, raw[i%n*8:][:8])
			sink += uint64(k.Place)
			i += 7
		}
	})
	ss.Begin()
	defer ss.End()
	b.Run("get", func(b *testing.B) {
		i, v := 0, store.View{}
		for b.Loop() {
			s := ss.Read(&ks[i%n], &v)
			if s != store.OK {
				b.Fatal(s)
			}
			sink += v.Version
			i += 7
			if i%64 == 0 {
				ss.End()
				ss.Begin()
			}
		}
	})
	b.Run("add", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if _, s := ss.Add(&ks[i%n], 1); s != store.OK {
				b.Fatal(s)
			}
			i += 7
		}
	})
	for _, size := range []int{16, 32} {
		views, sts := make([]store.View, size), make([]store.Status, size)
		b.Run("getbatch", func(b *testing.B) {
			i := 0
			for b.Loop() {
				at := i % (n - 64)
				ss.GetBatch(ks[at:at+size], views, sts)
				i += 7
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/key")
		})
	}
}

var sink uint64
