package store_test

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

// Who has nothing learns nothing, by time or by the disk, of how much others have.
func TestAScanOfAnEmptyDatabaseLooksAtNobodyElses(t *testing.T) {
	ss := session(t, open(t, store.Options{Databases: 2}))
	ss.Begin()
	defer ss.End()
	put := func(db int, key string) *store.Key {
		k := ss.Key(db, []byte(key))
		if st := ss.Put(&k, store.Write{Value: []byte("v")}, nil); st != store.OK {
			t.Fatal(st, ss.Err())
		}
		return &k
	}
	scan := func(want int) {
		t.Helper()
		before, seen := ss.Looked(), 0
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			var got store.Status
			if cursor, got = ss.Scan(1, cursor, 100, func([]byte, *store.View) { seen++ }); got != store.OK {
				t.Fatal(got)
			}
		}
		if looked := ss.Looked() - before; seen != want || (looked > 0) != (want > 0) {
			t.Errorf("it has shown %d records, want %d, and looked at %d", seen, want, looked)
		}
	}
	for i := range 5000 {
		put(0, fmt.Sprint("key", i))
	}
	scan(0)
	k := put(1, "mine")
	scan(1)
	if st := ss.Delete(k, nil); st != store.OK {
		t.Fatal(st)
	}
	scan(0)
}
