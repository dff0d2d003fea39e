package store_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

const benchKeys = 2_000_000

// loaded opens a store with many 30 B keys and 100 B values.
func loaded(b *testing.B, o store.Options) (*store.Session, *keys) {
	o.SegmentBytes = record.MaxSegmentBytes
	st := open(b, o)
	ss := session(b, st)
	ks := &keys{ss: ss, rng: rand.New(rand.NewPCG(1, 2))}
	value := make([]byte, 100)
	for n := range benchKeys {
		if n%64 == 0 {
			ss.Begin()
		}
		k := ks.at(uint64(n))
		if s := ss.Put(&k, store.Write{Value: value}, nil); s != store.OK {
			b.Fatal(s, ss.Err())
		}
		if n%64 == 63 {
			ss.Seal()
			ss.End()
		}
	}
	return ss, ks
}

type keys struct {
	ss  *store.Session
	rng *rand.Rand
	buf [64][30]byte
	n   int
}

func (k *keys) at(n uint64) store.Key {
	b := &k.buf[k.n%64]
	k.n++
	copy(b[:], "user:profile:000000000")
	binary.LittleEndian.PutUint64(b[22:], n*0x9E3779B97F4A7C15)
	return k.ss.Key(0, b[:])
}

func (k *keys) random() store.Key { return k.at(k.rng.Uint64N(benchKeys)) }

func BenchmarkStore(b *testing.B) {
	dir := os.Getenv("BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	for name, o := range map[string]store.Options{"volatile": {}, "everysec": {Dir: dir, Durability: store.EverySec}} {
		b.Run(name, func(b *testing.B) {
			ss, ks := loaded(b, o)
			b.Run("get", func(b *testing.B) { benchGet(b, ss, ks) })
			for _, n := range []int{8, 16, 32} {
				b.Run(fmt.Sprintf("getbatch%d", n), func(b *testing.B) { benchGetBatch(b, ss, ks, n) })
			}
			b.Run("put", func(b *testing.B) { benchPut(b, ss, ks) })
		})
	}
}

func benchGet(b *testing.B, ss *store.Session, ks *keys) {
	b.ReportAllocs()
	n := 0
	ss.Begin()
	for b.Loop() {
		k := ks.random()
		if _, s := ss.Get(&k); s != store.OK {
			b.Fatal(s)
		}
		if n++; n%64 == 0 {
			ss.End()
			ss.Begin()
		}
	}
	ss.End()
}

func benchGetBatch(b *testing.B, ss *store.Session, ks *keys, size int) {
	b.ReportAllocs()
	batch, views, st := make([]store.Key, size), make([]store.View, size), make([]store.Status, size)
	for n := 0; n < b.N; n += size {
		ss.Begin()
		for i := range batch {
			batch[i] = ks.random()
		}
		ss.GetBatch(batch, views, st)
		ss.End()
	}
}

func benchPut(b *testing.B, ss *store.Session, ks *keys) {
	b.ReportAllocs()
	value := make([]byte, 100)
	n := 0
	ss.Begin()
	for b.Loop() {
		k := ks.random()
		if s := ss.Put(&k, store.Write{Value: value}, nil); s != store.OK {
			b.Fatal(s, ss.Err())
		}
		if n++; n%64 == 0 {
			ss.Seal()
			ss.End()
			ss.Begin()
		}
	}
	ss.End()
}
