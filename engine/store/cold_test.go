package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

// until runs an operation until it is not held up by cold records.
func until(t testing.TB, ss *store.Session, f func() store.Status) store.Status {
	t.Helper()
	for {
		ss.Begin()
		st := f()
		ss.Seal()
		ss.End()
		if st != store.Cold {
			return st
		}
		if err := ss.Fetch(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDataLargerThanMemoryStaysReadableAndWritable(t *testing.T) {
	t.Parallel()
	for _, d := range []store.Durability{store.None, store.Checkpoint, store.EverySec, store.Always} {
		t.Run(d.String(), func(t *testing.T) {
			const keys = 40000 // of 160 bytes: about 6 MB, in 2 MB of memory beside the index
			st := open(t, store.Options{Device: device.NewMemory(), Durability: d, MemoryBytes: 4 << 20})
			ss := session(t, st)
			value := func(n, round int) string { return fmt.Sprintf("%0100d/%d", n, round) }
			for round := range 3 {
				for n := range keys {
					k := key(ss, n)
					s := until(t, ss, func() store.Status {
						return ss.Put(&k, store.Write{Value: []byte(value(n, round))}, nil)
					})
					if s != store.OK {
						t.Fatalf("put %d: %v %v", n, s, ss.Err())
					}
				}
			}
			for n := range keys {
				k := key(ss, n)
				s := until(t, ss, func() store.Status {
					v, s := ss.Get(&k)
					if s == store.OK && string(v.Value) != value(n, 2) {
						t.Fatalf("key %d: %q", n, v.Value)
					}
					return s
				})
				if s != store.OK {
					t.Fatalf("get %d: %v %v", n, s, ss.Err())
				}
			}
			m := st.Metrics()
			if m.ColdReads == 0 || m.MemoryBytes > 5<<20 {
				t.Fatalf("%d cold reads, %d bytes of memory", m.ColdReads, m.MemoryBytes)
			}
			if m.Keys != keys {
				t.Fatalf("%d keys, want %d", m.Keys, keys)
			}
		})
	}
}
