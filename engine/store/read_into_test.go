package store_test

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

// A record that is removed while it is copied was not read: the memory for it is as it was.
func TestWhatIsNotThereLeavesTheMemoryForItAsItWas(t *testing.T) {
	st := open(t, store.Options{Durability: store.None})
	ss := session(t, st)
	key, value := []byte("key"), bytes.Repeat([]byte("v"), 256)
	var stop atomic.Bool
	var changing sync.WaitGroup
	defer changing.Wait()
	defer stop.Store(true)
	other := session(t, st)
	changing.Go(func() {
		for !stop.Load() {
			other.Begin()
			k := other.Key(0, key)
			other.Put(&k, store.Write{Value: value}, nil)
			other.Delete(&k, nil)
			other.End()
		}
	})
	var v store.View
	var sight store.Sight
	untouched := make([]byte, len(value))
	for i := range scale(300_000) {
		into := make([]byte, len(value))
		ss.Begin()
		k := ss.Key(0, key)
		n, status := ss.ReadInto(&k, &v, &sight, into)
		ss.End()
		switch {
		case status == store.OK && n == len(value) && bytes.Equal(into, value):
		case status == store.NotFound && bytes.Equal(into, untouched):
		default:
			t.Fatalf("read %d: %v, %d bytes: %q", i, status, n, into)
		}
	}
}

// What was expected is a hint: a read sees what is there when it reads.
func TestAReadThatWasExpectedSeesWhatIsThere(t *testing.T) {
	for name, o := range map[string]store.Options{"in place": {}, "logged": {Durability: store.EverySec, Dir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			ss := session(t, open(t, o))
			names := []string{"same", "changed", "longer", "removed", "absent", "appears", "expires", "large"}
			want := []string{"one", "two", strings.Repeat("2", 200), "", "", "two", "one", strings.Repeat("x", 500)}
			ss.Begin()
			defer ss.End()
			for i, n := range names {
				switch n {
				case "absent", "appears":
				case "expires":
					put(t, ss, 0, n, "one", ss.Now()+1_000_000)
				case "large":
					put(t, ss, 0, n, want[i], 0)
				default:
					put(t, ss, 0, n, "one", 0)
				}
			}
			keys, sights := make([]store.Key, len(names)), make([]store.Sight, len(names))
			for i, n := range names {
				ss.Name(&keys[i], 0, []byte(n))
			}
			ss.Expect(keys, sights)
			put(t, ss, 0, "changed", "two", 0)
			put(t, ss, 0, "longer", want[2], 0)
			remove(t, ss, 0, "removed")
			put(t, ss, 0, "appears", "two", 0)
			for i, n := range names {
				var v store.View
				into := make([]byte, 256)
				size, status := ss.ReadExpected(&keys[i], &v, &sights[i], into)
				got := string(v.Value)
				if v.Value == nil {
					got = string(into[:size])
				}
				if got != want[i] || (status == store.OK) != (want[i] != "") {
					t.Errorf("%s: %v %q, want %q", n, status, got, want[i])
				}
			}
		})
	}
}

// A name is that of a table, which another one replaces when a database is emptied.
func TestANameIsOfTheTableThatADatabaseHas(t *testing.T) {
	st := open(t, store.Options{})
	ss := session(t, st)
	ss.Begin()
	k := ss.Key(1, []byte("key"))
	if !ss.Names(&k, 1) || ss.Names(&k, 0) {
		t.Error("a name is that of another database")
	}
	ss.End()
	if err := st.Truncate(1); err != nil {
		t.Fatal(err)
	}
	ss.Begin()
	defer ss.End()
	if ss.Names(&k, 1) {
		t.Error("a name is that of a table that was emptied")
	}
}
