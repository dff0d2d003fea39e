package store

import (
	"fmt"
	"testing"
)

func TestAnEstimateFollowsWhereRecordsAreAndNotHowManyPlaces(t *testing.T) {
	st, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	if n, bytes := st.Estimate([]Range{wholeRange}); n != 0 || bytes != 0 {
		t.Errorf("an empty store has %d records of %d bytes", n, bytes)
	}
	const records = 5000
	var first Range
	for i := range records {
		ss.Begin()
		k := ss.Key(0, fmt.Appendf(nil, "{tag}-%d", i)) // All in one slot.
		if s := ss.Put(&k, Write{Value: make([]byte, 100)}, nil); s != OK {
			t.Fatal(s)
		}
		first = Range{k.Place >> 50 << 50, k.Place | 1<<50 - 1}
		ss.Seal()
		ss.End()
	}
	if n, bytes := st.Estimate([]Range{first}); n < records*9/10 || n > records*11/10 || bytes < records*100 {
		t.Errorf("%d records of %d bytes, want %d", n, bytes, records)
	}
	rest := Range{first.Last + 1, wholeRange.Last}
	if n, _ := st.Estimate([]Range{rest}); n > records/10 {
		t.Errorf("%d records where none are", n)
	}
}
