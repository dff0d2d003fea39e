package workload

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

func TestZetaAgreesWithYCSBsConstant(t *testing.T) {
	const ycsb = 26.46902820178302 // ScrambledZipfianGenerator.ZETAN, for ten billion items
	if got := zeta(10_000_000_000, Theta); math.Abs(got-ycsb) > 1e-6 {
		t.Fatalf("zeta = %.9f, want %.9f", got, ycsb)
	}
}

func TestZetaIsTheSumOfItsTerms(t *testing.T) {
	for _, n := range []uint64{1, 2, zetaExact, zetaExact + 1, 3 * zetaExact} {
		var sum float64
		for i := uint64(1); i <= n; i++ {
			sum += math.Pow(float64(i), -0.5)
		}
		if got := zeta(n, 0.5); math.Abs(got-sum) > 1e-7 {
			t.Errorf("zeta(%d) = %.9f, want %.9f", n, got, sum)
		}
	}
}

func TestRanksFollowTheZipfLaw(t *testing.T) {
	const items, draws = 100_000, 2_000_000
	zipf := NewZipf(items, Theta)
	r := rand.New(rand.NewPCG(1, 2))
	count := make([]int, items)
	for range draws {
		count[zipf.Rank(r.Float64())]++
	}
	// The share of the first k ranks: exact for the first two, and Gray's fit
	// stays within two percent beyond.
	for _, k := range []uint64{1, 2, 10, 100, 1000, 10_000, items} {
		want := zeta(k, Theta) / zeta(items, Theta)
		sum := 0
		for _, n := range count[:k] {
			sum += n
		}
		got := float64(sum) / draws
		noise := 4 * math.Sqrt(want*(1-want)/draws)
		slack := noise
		if k > 2 {
			slack += 0.02
		}
		if math.Abs(got-want) > slack {
			t.Errorf("first %d ranks have %.4f of the draws, want %.4f", k, got, want)
		}
	}
}

func TestRankStaysBelowItems(t *testing.T) {
	for _, items := range []uint64{3, 10, 1000, ycsbItems} {
		zipf := NewZipf(items, Theta)
		if got := zipf.Rank(math.Nextafter(1, 0)); got >= items {
			t.Errorf("%d items: rank %d", items, got)
		}
	}
}

func TestScrambleIsFNV1a(t *testing.T) {
	for _, v := range []uint64{0, 1, 42, 1 << 33, math.MaxUint64} {
		h := fnv.New64a()
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
		want := int64(h.Sum64())
		if want < 0 {
			want = -want
		}
		if got := scramble(v); got != uint64(want) {
			t.Errorf("scramble(%d) = %d, want %d", v, got, want)
		}
	}
}
