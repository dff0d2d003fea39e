package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

func TestRecoveryFromASnapshotAndTheTailGivesWhatWasThere(t *testing.T) {
	for _, memory := range []int64{0, 4 << 20} {
		t.Run(fmt.Sprint("memory ", memory), func(t *testing.T) {
			const keys = 30000
			dev := device.NewMemory()
			o := store.Options{Device: dev, Durability: store.EverySec, MemoryBytes: memory, SegmentBytes: 64 << 10}
			st := open(t, o)
			ss := session(t, st)
			want := map[string]string{}
			put := func(db, n int, v string) {
				t.Helper()
				name := fmt.Sprintf("key:%d", n)
				k := ss.Key(db, []byte(name))
				w := store.Write{Value: []byte(v)}
				if n%7 == 0 {
					w.ExpireAt = 1 << 50
				}
				if s := until(t, ss, func() store.Status { return ss.Put(&k, w, nil) }); s != store.OK {
					t.Fatal(s, ss.Err())
				}
				want[fmt.Sprint(db, name)] = v
			}
			del := func(db, n int) {
				t.Helper()
				name := fmt.Sprintf("key:%d", n)
				k := ss.Key(db, []byte(name))
				until(t, ss, func() store.Status { return ss.Delete(&k, nil) })
				delete(want, fmt.Sprint(db, name))
			}
			for n := range keys {
				put(n%3, n, fmt.Sprintf("%0100d first", n))
			}
			for n := 0; n < keys; n += 5 {
				del(n%3, n)
			}
			if err := st.Checkpoint(context.Background()); err != nil {
				t.Fatal(err)
			}
			for n := 1; n < keys; n += 9 {
				put(n%3, n, fmt.Sprintf("%0100d second", n))
			}
			for n := 2; n < keys; n += 11 {
				del(n%3, n)
			}
			for n := keys; n < keys+500; n++ {
				put(n%3, n, "new")
			}
			o.Device = dev.Crash()
			again := open(t, o)
			expect(t, again, want)
			ss2 := session(t, again)
			expires := 0
			for db := range 3 {
				_, e := again.Count(db)
				expires += int(e)
			}
			_ = ss2
			wantExpires := 0
			for name := range want {
				var n int
				fmt.Sscanf(name[1:], "key:%d", &n)
				if n%7 == 0 {
					wantExpires++
				}
			}
			if expires != wantExpires {
				t.Errorf("%d keys expire, want %d", expires, wantExpires)
			}
		})
	}
}

// expect checks that a store holds exactly what is wanted, keyed by database
// and key.
func expect(t testing.TB, st *store.Store, want map[string]string) {
	t.Helper()
	ss := session(t, st)
	total := 0
	for name, v := range want {
		k := ss.Key(int(name[0]-'0'), []byte(name[1:]))
		s := until(t, ss, func() store.Status {
			got, s := ss.Get(&k)
			if s == store.OK && string(got.Value) != v {
				t.Fatalf("%s: %.120q, want %q", name, got.Value, v)
			}
			return s
		})
		if s != store.OK {
			t.Fatalf("%s: %v %v", name, s, ss.Err())
		}
	}
	for db := range 3 {
		keys, _ := st.Count(db)
		total += int(keys)
	}
	if total != len(want) {
		t.Fatalf("%d keys, want %d", total, len(want))
	}
}
