package replica_test

import (
	"math"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/cluster/replica"
)

func TestRunsAreTheSetTheyWereMadeOf(t *testing.T) {
	r := seeded(t)
	for range 200 {
		var numbers []uint64
		for range r.IntN(50) {
			numbers = append(numbers, uint64(r.IntN(60)))
		}
		set := replica.RunsOf(slices.Clone(numbers)...)
		for n := range uint64(62) {
			if set.Contains(n) != slices.Contains(numbers, n) {
				t.Fatalf("%d in %v: %v", n, set, numbers)
			}
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		if got := slices.Collect(set.All()); !slices.Equal(got, numbers) || set.Len() != len(numbers) {
			t.Fatalf("%v became %v", numbers, got)
		}
		check(t, set.Check(60))
		back, err := replica.DecodeRuns(set.AppendTo(nil))
		if err != nil || !slices.Equal(back, set) {
			t.Fatalf("%v became %v, %v", set, back, err)
		}
	}
}

func TestRunsThatAreNoSetAreRefused(t *testing.T) {
	for _, r := range []replica.Runs{{{2, 1}}, {{1, 2}, {3, 4}}, {{5, 6}, {1, 2}}, {{0, math.MaxUint64}}, {{1, 5}, {2, 9}}, {{0, 99}}} {
		if r.Check(50) == nil {
			t.Errorf("%v was taken for a set of up to 50", r)
		}
	}
	check(t, replica.Runs{{0, math.MaxInt - 1}}.Check(math.MaxInt))
}

func FuzzRunsThatDecodeEncodeToThemselves(f *testing.F) {
	f.Add(replica.RunsOf[uint64](1, 2, 3, 9, 1<<40).AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := replica.DecodeRuns(in)
		if err != nil {
			return
		}
		if err := r.Check(math.MaxInt); err != nil {
			t.Fatal(err)
		}
		back, err := replica.DecodeRuns(r.AppendTo(nil))
		if err != nil || !slices.Equal(back, r) {
			t.Fatalf("%v became %v, %v", r, back, err)
		}
	})
}
