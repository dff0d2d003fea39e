package store

import (
	"slices"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// expected is all places where something is expected.
func expected(st *Store) (ranges []Range) {
	for _, a := range st.arriving.list() {
		ranges = append(ranges, a.ranges...)
	}
	return ranges
}

func TestNothingStaysExpectedThatNobodyHadOccasionToEnd(t *testing.T) {
	first, second, third := Range{0, 9}, Range{10, 19}, Range{30, 39}
	st, err := Open(Options{Device: device.NewMemory(), Durability: EverySec, Cluster: true, Arriving: []Range{first, second}})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	expects := func(when string, want ...Range) {
		t.Helper()
		if got := expected(st); !slices.Equal(got, want) {
			t.Fatalf("%s: %v, not %v", when, got, want)
		}
	}

	st.ArrivedBut(func() []Range {
		st.expectMore([]Range{third}) // What is asked here may have been before that.
		return []Range{{5, 19}}
	})
	expects("the one that is left, and one that came since", Range{5, 9}, second, third)

	if err := st.Retract(t.Context(), []Range{second}); err != nil {
		t.Fatal(err)
	}
	expects("what is another's is not expected", Range{5, 9}, third)

	st.ArrivedBut(func() []Range { return nil })
	expects("the end")
}

func TestWhatAPlaceKnewOfDeletionsEndsWithItsStay(t *testing.T) {
	all := []Range{wholeRange}
	st, err := Open(Options{Device: device.NewMemory(), Durability: EverySec, Cluster: true, Arriving: all})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	k := ss.Key(0, []byte("k"))
	if s := ss.Put(&k, Write{Value: []byte("v")}, nil); s != OK {
		t.Fatal(s)
	}
	if s := ss.Delete(&k, nil); s != OK {
		t.Fatal(s)
	}
	ss.Seal()
	ss.End()
	if !st.arriving.dead(&k, 1) || st.arriving.bytes() == 0 {
		t.Fatalf("the test is for a deletion that is known where something is expected; what is known takes %d bytes", st.arriving.bytes())
	}

	if err := st.Retract(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	a, err := st.Arrive(ArriveOptions{Ranges: all, Puller: nobody{}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.End()
	if st.arriving.dead(&k, 1) {
		t.Fatal("a record would be taken for one that was deleted here in another stay")
	}
}

// nobody is asked for keys in vain.
type nobody struct{}

func (nobody) Want(_ []ArrivingKey, done func(error)) { done(nil) }

func TestWhatTwoListsOfRangesHaveInCommonIsInOrder(t *testing.T) {
	last := ^record.Place(0)
	for _, c := range []struct{ a, b, want []Range }{
		{nil, []Range{{0, last}}, nil},
		{[]Range{{0, last}}, []Range{{3, 3}, {5, 9}}, []Range{{3, 3}, {5, 9}}},
		{[]Range{{30, 40}, {0, 9}}, []Range{{5, 35}}, []Range{{5, 9}, {30, 35}}},
		{[]Range{{0, 9}, {10, 19}}, []Range{{0, 4}, {9, 10}, {19, 30}}, []Range{{0, 4}, {9, 9}, {10, 10}, {19, 19}}},
		{[]Range{{0, 4}}, []Range{{5, last}}, nil},
		{[]Range{{7, last}}, []Range{{0, 6}, {9, last}}, []Range{{9, last}}},
	} {
		for range 2 {
			if got := intersect(c.a, c.b); !slices.Equal(got, c.want) {
				t.Errorf("%v and %v have %v in common, want %v", c.a, c.b, got, c.want)
			}
			c.a, c.b = c.b, c.a
		}
	}
}
