package functions

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// inOrder is what a range of a map answers.
func inOrder(m map[string]string, from, to string, limit int) string {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key < from || to != "" && key >= to || limit == 0 {
			continue
		}
		limit--
		b = binary.LittleEndian.AppendUint32(b, uint32(len(key)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(m[key])))
		b = append(append(b, key...), m[key]...)
	}
	return string(b)
}

// alike draws keys that share words and bytes with each other, of all values.
func alike(t *rapid.T) string {
	const shared = "sixteen bytes as"
	front := shared[:rapid.SampledFrom([]int{0, 3, 7, 8, 9, 16}).Draw(t, "shared")]
	return front + string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 0x7f, 0x80, 0xff}), 0, 10).Draw(t, "rest"))
}

func TestTreeAnswersAsASortedMapDoes(t *testing.T) {
	g := newExample(t, "tree")
	rapid.Check(t, func(t *rapid.T) {
		g.data = table{}
		model := map[string]string{}
		keys := rapid.OneOf(rapid.StringN(0, 2, -1), rapid.StringMatching(`(user|item):[0-9]{1,2}`),
			rapid.Just(strings.Repeat("k", 1024)), rapid.Just(strings.Repeat("k", 1000)),
			rapid.Custom(alike))
		values := rapid.OneOf(rapid.StringN(0, 20, -1), rapid.Just(strings.Repeat("value ", 100)), rapid.Just(strings.Repeat("large ", 500)))
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, value := keys.Draw(t, "key"), values.Draw(t, "value")
				_, had := model[key]
				if got := g.call(t, "tree_put", "t", key, value); got != flag(!had) {
					t.Fatalf("put said %s, and the key was there: %v", got, had)
				}
				model[key] = value
			},
			"get": func(t *rapid.T) {
				key, want := keys.Draw(t, "key"), ""
				if value, there := model[key]; there {
					want = "1" + value
				}
				if got := g.call(t, "tree_get", "t", key); got != want {
					t.Fatalf("get %q: %q, want %q", key, got, want)
				}
			},
			"del": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				_, had := model[key]
				if got := g.call(t, "tree_del", "t", key); got != flag(had) {
					t.Fatalf("del said %s, and the key was there: %v", got, had)
				}
				delete(model, key)
			},
			"range": func(t *rapid.T) {
				from, to, limit := keys.Draw(t, "from"), keys.Draw(t, "to"), rapid.IntRange(0, 30).Draw(t, "limit")
				if got, want := g.call(t, "tree_range", "t", from, to, limit), inOrder(model, from, to, limit); got != want {
					t.Fatalf("range %q to %q, %d: %q, want %q", from, to, limit, got, want)
				}
			},
		})
	})
}

func TestATreeGrowsToSeveralLevels(t *testing.T) {
	g := newExample(t, "tree")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	model := map[string]string{}
	for _, i := range random.Perm(4000) {
		key, value := fmt.Sprintf("key-%06d", i), strings.Repeat("v", random.IntN(80))
		model[key] = value
		g.call(t, "tree_put", "t", key, value)
	}
	if levels := binary.LittleEndian.Uint32([]byte(g.data["{t}:r"][4:])); levels < 3 {
		t.Fatalf("%d levels", levels)
	}
	if g.call(t, "tree_range", "t", "", "", 5000) != inOrder(model, "", "", 5000) {
		t.Fatal("the whole tree is not what was put")
	}
	for range 200 {
		from, to := fmt.Sprintf("key-%06d", random.IntN(4000)), fmt.Sprintf("key-%06d", random.IntN(4000))
		if g.call(t, "tree_range", "t", from, to, 100) != inOrder(model, from, to, 100) {
			t.Fatalf("wrong range from %s to %s", from, to)
		}
	}
	g.refused(t, 3, "tree_put", "t", strings.Repeat("k", 1025), "v")
	g.refused(t, 1, "tree_put", "{t}", "k", "v")
	g.data["{t}:r"] = "short"
	g.refused(t, 2, "tree_get", "t", "k")
}
