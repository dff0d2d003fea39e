package store_test

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

func open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 64 << 10
	}
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func session(t testing.TB, st *store.Store) *store.Session {
	t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ss.Close)
	return ss
}

// configs are the kinds of store that behave alike.
func configs() map[string]func(testing.TB) store.Options {
	return map[string]func(testing.TB) store.Options{
		"memory": func(testing.TB) store.Options { return store.Options{} },
		"checkpoint": func(testing.TB) store.Options {
			return store.Options{Device: device.NewMemory(), Durability: store.Checkpoint}
		},
		"everysec": func(testing.TB) store.Options {
			return store.Options{Device: device.NewMemory(), Durability: store.EverySec}
		},
		"always": func(testing.TB) store.Options {
			return store.Options{Device: device.NewMemory(), Durability: store.Always}
		},
		"disk": func(t testing.TB) store.Options { return store.Options{Dir: t.TempDir(), Durability: store.EverySec} },
	}
}

func forAll(t *testing.T, f func(*testing.T, store.Options)) {
	for name, o := range configs() {
		t.Run(name, func(t *testing.T) { f(t, o(t)) })
	}
}

func key(ss *store.Session, n int) store.Key { return ss.Key(0, fmt.Appendf(nil, "key:%d", n)) }

func TestWhatWasPutIsThere(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		const keys = 20000
		for n := range keys {
			ss.Begin()
			k := key(ss, n)
			if s := ss.Put(&k, store.Write{Value: fmt.Appendf(nil, "value %d", n)}, nil); s != store.OK {
				t.Fatal(s, ss.Err())
			}
			ss.Seal()
			ss.End()
		}
		for n := range keys {
			ss.Begin()
			k := key(ss, n)
			v, s := ss.Get(&k)
			if s != store.OK || string(v.Value) != fmt.Sprintf("value %d", n) {
				t.Fatalf("key %d: %v %q", n, s, v.Value)
			}
			ss.End()
		}
		if got, _ := st.Count(0); got != keys {
			t.Fatalf("count %d, want %d", got, keys)
		}
	})
}
