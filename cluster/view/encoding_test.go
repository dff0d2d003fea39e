package view

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// threeNodes has a moved slot, half a slot, and a node that was drained.
func threeNodes(t testing.TB) Map {
	t.Helper()
	m, err := Initial("n1", "n2", "n3")
	m = must(t, m, err)
	m, err = m.Assign(RangesOf(SlotsRange(100, 100)), "n2")
	m = must(t, m, err)
	half, _ := SlotsRange(200, 200).halves()
	m, err = m.Assign(RangesOf(half), "n2")
	m = must(t, m, err)
	m, _, err = m.Recover("n3", "n1", "n4")
	return must(t, m, err)
}

func TestTheEncodingStaysAsItIs(t *testing.T) {
	want, err := os.ReadFile("testdata/map.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(threeNodes(t), "", "  ")
	if err != nil || string(got)+"\n" != string(want) {
		t.Fatalf("nodes of other versions cannot read this map; got\n%s\n%v", got, err)
	}
	var back Map
	if err := json.Unmarshal(want, &back); err != nil || !back.Equal(threeNodes(t)) {
		t.Fatalf("%v, %v", back, err)
	}
}

func TestMapsThatAreNoneAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                      "unexpected end",
		`{}`:                     "it has format 0 and this program knows 1",
		`{"format":2}`:           "update the older side",
		`{"format":1}`:           "nobody owns anything",
		`{"format":1,"spans":1}`: "cannot unmarshal",
		`{"format":1,"spans":[{"range":"0000000000000000-ffffffffffffffff","owner":"a"}]}`: "has no view",
	} {
		var m Map
		if err := json.Unmarshal([]byte(text), &m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadingAMap(f *testing.F) {
	text, err := json.Marshal(threeNodes(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":1,"spans":[{"range":"0000000000000000-ffffffffffffffff","owner":"a"}],"views":{"a":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Map
		if json.Unmarshal(text, &m) != nil {
			return
		}
		if err := Validate(Map{}, m); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, m)
		if slots := m.Slots(); slots[0].First != 0 || slots[len(slots)-1].Last != 16383 {
			t.Fatalf("slots are %v", slots)
		}
	})
}
