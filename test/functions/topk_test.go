package functions

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

type hit struct {
	key        string
	similarity float64
}

func floats(v []float32) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func inner(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func hits(response string) []hit {
	var all []hit
	for b := []byte(response); len(b) > 0; {
		n := binary.LittleEndian.Uint32(b[4:])
		all = append(all, hit{string(b[8 : 8+n]), float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))})
		b = b[8+n:]
	}
	return all
}

// compareHits: sums of floats differ by their order, so near ones may change places.
func compareHits(t *testing.T, got, want []hit, all map[string]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d hits, want %d", len(got), len(want))
	}
	seen := map[string]bool{}
	for i := range got {
		if seen[got[i].key] {
			t.Fatalf("%s comes twice", got[i].key)
		}
		seen[got[i].key] = true
		if math.Abs(got[i].similarity-want[i].similarity) > 1e-4 || math.Abs(got[i].similarity-all[got[i].key]) > 1e-4 {
			t.Fatalf("hit %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestTopKFindsTheMostSimilarVectors(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	vector := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = random.Float32()*2 - 1
		}
		return v
	}
	for _, dim := range []int{1, 3, 64, 101} {
		g := newExample(t, "topk")
		query := vector(dim)
		cosines, inners := map[string]float64{}, map[string]float64{}
		for i := range 300 {
			key, v := fmt.Sprintf("doc:%d", i), vector(dim)
			g.data[key] = string(floats(v))
			inners[key] = inner(query, v)
			cosines[key] = inner(query, v) / math.Sqrt(inner(query, query)*inner(v, v))
		}
		g.data["doc:short"] = "abcd"[:4*min(1, dim-1)]
		g.data["other:1"] = string(floats(query))
		for _, k := range []int{1, 10, 1000} {
			for function, all := range map[string]map[string]float64{"topk": cosines, "topk_dot": inners} {
				var want []hit
				for key, similarity := range all {
					want = append(want, hit{key, similarity})
				}
				slices.SortFunc(want, func(a, b hit) int { return cmp.Compare(b.similarity, a.similarity) })
				got := hits(g.call(t, function, "doc:", k, floats(query)))
				compareHits(t, got, want[:min(k, len(want))], all)
			}
		}
	}
}

func TestTopKRefusesWhatIsNoVector(t *testing.T) {
	g := newExample(t, "topk")
	g.refused(t, 1, "topk", "doc:", 0, floats([]float32{1}))
	g.refused(t, 1, "topk", "doc:", 1001, floats([]float32{1}))
	g.refused(t, 2, "topk", "doc:", 1, []byte{})
	g.refused(t, 2, "topk", "doc:", 1, []byte{1, 2, 3})
	if got := g.call(t, "topk", "doc:", 1, floats([]float32{1})); got != "" {
		t.Fatalf("an empty store has %q", got)
	}
}
