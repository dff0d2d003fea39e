package store_test

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

func TestAVersionIsThatOfARead(t *testing.T) {
	st := open(t, store.Options{})
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	defer ss.End()
	same := func(key string) (uint64, store.Status) {
		t.Helper()
		k := ss.Key(0, []byte(key))
		v, want := ss.Get(&k)
		got, st := ss.Version(&k)
		if st != want || st == store.OK && got != v.Version {
			t.Errorf("%s: version %d, %v; a read has %d, %v", key, got, st, v.Version, want)
		}
		return got, st
	}
	same("nobody")
	put(t, ss, 0, "key", "one", 0)
	first, _ := same("key")
	put(t, ss, 0, "key", "two", 0)
	if second, _ := same("key"); second == first {
		t.Errorf("a write has left version %d", first)
	}
	put(t, ss, 0, "expires", "x", ss.Now()+1_000_000)
	same("expires")
	put(t, ss, 0, "expired", "x", 1)
	same("expired")
	put(t, ss, 0, "large", strings.Repeat("x", 8<<20), 0)
	same("large")
	remove(t, ss, 0, "key")
	if _, st := same("key"); st != store.NotFound {
		t.Errorf("a key that was deleted: %v", st)
	}
}
