package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
)

func TestWhatHasChangedSinceItWasDraftedIsOutdated(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		var keys []store.ArrivingKey
		write := func(name string, w store.Write) {
			t.Helper()
			k := ss.Key(0, []byte(name))
			ss.Begin()
			defer ss.End()
			if got := ss.Put(&k, w, nil); got != store.OK {
				t.Fatal(name, got, ss.Err())
			}
			ss.Seal()
		}
		remove := func(name string) {
			t.Helper()
			k := ss.Key(0, []byte(name))
			ss.Begin()
			defer ss.End()
			if got := ss.Delete(&k, nil); got != store.OK {
				t.Fatal(name, got, ss.Err())
			}
			ss.Seal()
		}
		note := func(name string) {
			k := ss.Key(0, []byte(name))
			keys = append(keys, store.ArrivingKey{Place: k.Place, Table: k.Table, Bytes: []byte(name)})
		}
		value := func(s string) store.Write { return store.Write{Value: []byte(s)} }
		for i := range 100 { // More than are looked up at once.
			name := fmt.Sprint("still ", i)
			write(name, value("as it was"))
			note(name)
		}
		for _, name := range []string{"written in place", "grown", "removed", "made anew", "given time"} {
			write(name, value("before"))
			note(name)
		}
		write("large", store.Write{Value: make([]byte, 4<<20)})
		note("large")
		note("missing")
		write("over", store.Write{Value: []byte("soon"), ExpireAt: time.Now().Add(-time.Hour).UnixMilli()})
		note("over")

		given := map[int]uint64{}
		var drafted []store.ArrivingKey
		var versions []uint64
		ss.Begin()
		ss.Draft(keys, func(i int, version uint64, entry []byte) {
			if len(entry) == 0 || version == 0 {
				t.Errorf("%s: an entry of %d bytes, version %d", keys[i].Bytes, len(entry), version)
			}
			given[i] = version
			drafted, versions = append(drafted, keys[i]), append(versions, version)
		})
		ss.End()
		if len(given) != 105 {
			t.Errorf("%d of 105 keys were given", len(given))
		}
		outdated := func() (names []string) {
			ss.Begin()
			defer ss.End()
			ss.Outdated(drafted, versions, func(i int) { names = append(names, string(drafted[i].Bytes)) })
			return names
		}
		if names := outdated(); len(names) != 0 {
			t.Errorf("%q are outdated, and nobody wrote", names)
		}
		write("written in place", value("behind"))
		write("grown", store.Write{Value: make([]byte, 300)})
		remove("removed")
		remove("made anew")
		write("made anew", value("before"))
		write("given time", store.Write{Value: []byte("before"), ExpireAt: time.Now().Add(time.Hour).UnixMilli()})
		if got, want := fmt.Sprint(outdated()), "[written in place grown removed made anew given time]"; got != want {
			t.Errorf("%s are outdated, want %s", got, want)
		}
	})
}
