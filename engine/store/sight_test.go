package store_test

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

func TestASightIsTheSameUntilItsRecordChanges(t *testing.T) {
	for name, o := range map[string]store.Options{"in place": {}, "logged": {Durability: store.EverySec, Dir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			ss := session(t, open(t, o))
			ss.Begin()
			defer ss.End()
			var v store.View
			var s store.Sight
			look := func(key string, want bool) {
				t.Helper()
				k := ss.Key(0, []byte(key))
				_, got := ss.ReadInto(&k, &v, &s, make([]byte, 8))
				if s.Same() != want {
					t.Fatalf("%s, %v: the same: %v", key, got, s.Same())
				}
			}
			for _, change := range []func(){
				func() { put(t, ss, 0, "key", "two", 0) },
				func() { put(t, ss, 0, "key", strings.Repeat("longer", 9), 0) },
				func() { remove(t, ss, 0, "key") },
			} {
				put(t, ss, 0, "key", "one", 0)
				put(t, ss, 0, "other", "one", 0)
				look("key", true)
				put(t, ss, 0, "other", "two", 0)
				if !s.Same() {
					t.Error("a write of another key")
				}
				if change(); s.Same() {
					t.Error("a change was not seen")
				}
			}
			look("key", false) // It is absent: that has to be looked up.
			put(t, ss, 0, "key", strings.Repeat("too long for the buffer", 9), 0)
			look("key", true)
			put(t, ss, 0, "expires", "x", ss.Now()+1_000_000)
			look("expires", false)
			put(t, ss, 0, "key", "one", 0)
			look("key", true)
			k := ss.Key(0, []byte("key"))
			if st := ss.Lock([]store.Key{k}); st != store.OK {
				t.Fatal(st)
			}
			if s.Same() {
				t.Error("a key that a transaction holds")
			}
			ss.Abort()
		})
	}
}
