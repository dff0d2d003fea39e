package record

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func BenchmarkPlaceOf(b *testing.B) {
	for _, n := range []int{8, 16, 30, 64, 250, 1000} {
		key := []byte(strings.Repeat("k", n))
		b.Run(fmt.Sprintf("key=%d", n), func(b *testing.B) {
			for b.Loop() {
				PlaceOf(1, key)
			}
		})
	}
}

func BenchmarkSlotOf(b *testing.B) {
	for name, key := range map[string]string{"plain": "user:1234567890:profile:abcdef", "tag": "{user:1234567890}:profile:abcdef"} {
		key := []byte(key)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				SlotOf(key)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	key, dst := []byte("user:1234567890:profile:abcdef"), make([]byte, 8192)
	for _, n := range []int{8, 100, 1000, 4000} {
		for _, withCRC := range []bool{false, true} {
			value := make([]byte, n)
			b.Run(fmt.Sprintf("value=%d/crc=%t", n, withCRC), func(b *testing.B) {
				h := &Header{Type: TypePut, Table: 1, Version: 9}
				b.SetBytes(int64(Size(len(key), n, false)))
				for b.Loop() {
					Encode(dst, h, key, value, withCRC)
				}
			})
		}
	}
}

func BenchmarkChainAdd(b *testing.B) {
	chain, p := NewChain(1), PtrOf(encoded(Header{Type: TypePut, Version: 1}, "key", "value"))
	for b.Loop() {
		chain.Add(p)
	}
}

func BenchmarkPutSeal(b *testing.B) {
	chain, dst := NewChain(1), make([]byte, SealBytes)
	for b.Loop() {
		chain.PutSeal(dst, 1, false)
	}
}

func BenchmarkKeyIs(b *testing.B) {
	key := []byte("user:1234567890:profile:abcdef")
	p := PtrOf(encoded(Header{Type: TypePut, Version: 1, Table: 1}, string(key), "value"))
	for b.Loop() {
		p.KeyIs(1, key)
	}
}

func BenchmarkScan(b *testing.B) {
	for _, maxValue := range []int{100, 2000} {
		seg := randomBatches(rand.New(rand.NewPCG(1, 2)), 1<<20, maxValue)
		for _, skip := range []bool{false, true} {
			b.Run(fmt.Sprintf("values=0-%d/skipCRC=%t", maxValue, skip), func(b *testing.B) {
				b.SetBytes(int64(seg.off))
				for b.Loop() {
					if _, err := ScanWith(seg.seg, testID, ScanOptions{DurableTo: seg.off, SkipCRC: skip}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkEntries(b *testing.B) {
	seg := randomBatches(rand.New(rand.NewPCG(1, 2)), 1<<20, 100)
	b.SetBytes(int64(seg.off))
	for b.Loop() {
		for _, p := range Entries(seg.seg) {
			p.Type()
		}
	}
}
