package library

import (
	"encoding/binary"
	"os"
	"testing"
	"time"
)

// The clock is the tenant's: no module of it is told a time before one that another was told, nor is a later version. What
// another tenant was told counts for nobody else.
func TestTheClockIsTheTenantsWhicheverModuleAsks(t *testing.T) {
	code, err := os.ReadFile("../extension/testdata/work.wasm")
	if err != nil {
		t.Fatal(err)
	}
	l := openLibrary(t, "", nil)
	anna, bert := l.shelf(1, "anna"), l.shelf(2, "bert")
	at := time.Unix(1_000_000, 0)
	for _, s := range []*Shelf{anna, bert} {
		s.clock.Source = func() time.Time { return at }
	}
	told := func(s *Shelf) int64 {
		t.Helper()
		response, err := call(s, "clock")
		if err != nil || len(response) < 8 {
			t.Fatalf("%q, %v", response, err)
		}
		return int64(binary.LittleEndian.Uint64([]byte(response)))
	}
	install(t, anna, "first", code)
	install(t, bert, "first", code)
	later := told(anna)
	if want := at.UnixNano(); later != want {
		t.Fatalf("it is %d, want %d", later, want)
	}
	at = at.Add(-time.Hour)
	install(t, anna, "first", code)
	if now := told(anna); now < later {
		t.Errorf("the next version is told %d after %d", now, later)
	}
	must(t, anna.Delete(t.Context(), "first"))
	install(t, anna, "second", code)
	if now := told(anna); now < later {
		t.Errorf("another module is told %d after %d", now, later)
	}
	if now := told(bert); now != at.UnixNano() {
		t.Errorf("another tenant is told %d, want %d", now, at.UnixNano())
	}
}
