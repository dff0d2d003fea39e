package functions

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// standing is a board's members in order.
func standing(scores map[string]int64) []string {
	var members []string
	for m := range scores {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b string) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return members
}

func lines(scores map[string]int64, members []string) string {
	var b strings.Builder
	for _, m := range members {
		fmt.Fprintf(&b, "%d %s\n", scores[m], m)
	}
	return b.String()
}

func TestRankAnswersAsASortedSliceDoes(t *testing.T) {
	g := newExample(t, "rank")
	rapid.Check(t, func(t *rapid.T) {
		g.data = table{}
		scores := map[string]int64{}
		members := rapid.OneOf(rapid.StringMatching(`[ab]{1,3}`), rapid.StringMatching(`player-[0-9]{1,3}`), rapid.StringMatching(`x{39}`))
		numbers := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(math.MinInt64/4, math.MaxInt64/4))
		same := func(got, want string) {
			t.Helper()
			if got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				m, score := members.Draw(t, "member"), numbers.Draw(t, "score")
				_, had := scores[m]
				same(g.call(t, "rank_set", "b", m, score), flag(!had))
				scores[m] = score
			},
			"add": func(t *rapid.T) {
				m, by := members.Draw(t, "member"), numbers.Draw(t, "by")
				if had := scores[m]; (had > 0) == (by > 0) && max(had, -had) > math.MaxInt64/2 {
					t.Skip("it would be too much")
				}
				scores[m] += by
				same(g.call(t, "rank_add", "b", m, by), fmt.Sprint(scores[m]))
			},
			"del": func(t *rapid.T) {
				m := members.Draw(t, "member")
				_, had := scores[m]
				same(g.call(t, "rank_del", "b", m), flag(had))
				delete(scores, m)
			},
			"get": func(t *rapid.T) {
				m, want := members.Draw(t, "member"), ""
				if score, there := scores[m]; there {
					want = fmt.Sprint(score, " ", slices.Index(standing(scores), m))
				}
				same(g.call(t, "rank_get", "b", m), want)
			},
			"top": func(t *rapid.T) {
				all := standing(scores)
				from, limit := rapid.IntRange(0, 20).Draw(t, "from"), rapid.IntRange(0, 20).Draw(t, "limit")
				from = min(from, len(all))
				same(g.call(t, "rank_top", "b", from, limit), lines(scores, all[from:min(from+limit, len(all))]))
				same(g.call(t, "rank_count", "b"), fmt.Sprint(len(all)))
			},
		})
	})
}

func TestABoardOfManyPartsStaysInOrder(t *testing.T) {
	g := newExample(t, "rank")
	scores := map[string]int64{}
	for i := range 2000 {
		m, score := fmt.Sprintf("member-%d", i*37%1500), int64(i*7919%500)
		scores[m] = score
		g.call(t, "rank_set", "b", m, score)
	}
	all := standing(scores)
	if got := g.call(t, "rank_top", "b", 0, 10_000); got != lines(scores, all) {
		t.Fatal("the board is not in order")
	}
	for position, m := range all {
		if got, want := g.call(t, "rank_get", "b", m), fmt.Sprint(scores[m], " ", position); got != want {
			t.Fatalf("%s is at %s, want %s", m, got, want)
		}
	}
	for _, m := range all {
		g.call(t, "rank_del", "b", m)
	}
	if len(g.data) != 0 {
		t.Fatalf("an empty board has left %d records", len(g.data))
	}
}

func TestRankRefusesWhatItCannotKeep(t *testing.T) {
	g := newExample(t, "rank")
	g.refused(t, 1, "rank_set", "{b}", "m", 1)
	g.refused(t, 2, "rank_set", "b", "", 1)
	g.refused(t, 2, "rank_set", "b", strings.Repeat("m", 40), 1)
	g.refused(t, 241, "rank_set", "b", "m", "much")
	g.refused(t, 241, "rank_set", "b", "m", "9223372036854775808")
	g.call(t, "rank_set", "b", "m", int64(math.MaxInt64))
	g.refused(t, 4, "rank_add", "b", "m", 1)
	g.call(t, "rank_set", "b", "m", int64(math.MinInt64))
	g.refused(t, 4, "rank_add", "b", "m", -1)
	g.data["{b}:r"] = "short"
	g.refused(t, 3, "rank_count", "b")
}
