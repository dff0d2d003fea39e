package store

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

func TestAnEstimateFollowsWhereRecordsAreAndNotHowManyPlaces(t *testing.T) {
	st, ss := openOne(t, Options{})
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

func TestASurveyTellsWhereTheBytesAre(t *testing.T) {
	st, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	st.Survey(10, func(record.Place, int64) { t.Error("an empty store has something") })
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	// As many keys in one slot as in the other, and nine times as many bytes.
	large, small := uint16(0), uint16(0)
	for i := range 4000 {
		ss.Begin()
		k, value := ss.Key(0, fmt.Appendf(nil, "{small}-%d", i)), 100
		if i%2 == 0 {
			k, value = ss.Key(0, fmt.Appendf(nil, "{large}-%d", i)), 1500
			large = k.Place.Slot()
		} else {
			small = k.Place.Slot()
		}
		if s := ss.Put(&k, Write{Value: make([]byte, value)}, nil); s != OK {
			t.Fatal(s)
		}
		ss.Seal()
		ss.End()
	}
	bytes, drawn := map[uint16]int64{}, 0
	st.Survey(4096, func(p record.Place, b int64) {
		bytes[p.Slot()] += b
		drawn++
	})
	share := float64(bytes[large]) / float64(bytes[large]+bytes[small])
	if len(bytes) != 2 || drawn != 4096 || share < 0.85 || share > 0.97 {
		t.Errorf("%d records were drawn, and %.2f of their bytes are in the larger slot of %v", drawn, share, bytes)
	}
}
