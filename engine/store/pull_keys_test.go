package store_test

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// pullWaiting pulls single keys once, and counts entries by key; large values are counted by their records.
func pullWaiting(t *testing.T, ss *store.Session, keys []store.ArrivingKey, from store.PullCursor, maxBytes int) (u store.Unsent, seen map[string]int, bytes int) {
	t.Helper()
	for s := store.Cold; s == store.Cold; {
		seen, bytes = map[string]int{}, 0
		ss.Begin()
		u, s = ss.PullKeys(keys, from, maxBytes, func(entry []byte) {
			bytes += len(entry)
			if p := record.PtrOf(entry); p.Table() < 16 {
				seen[string(p.Key())]++
			}
		})
		ss.End()
		switch s {
		case store.OK:
		case store.Cold:
			if len(seen) > 0 {
				t.Error("entries were given though a disk is waited for")
			}
			if err := ss.Fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatal(s, ss.Err())
		}
	}
	return u, seen, bytes
}

func putBytes(t *testing.T, ss *store.Session, k *store.Key, size int) {
	t.Helper()
	if s := until(t, ss, func() store.Status { return ss.Put(k, store.Write{Value: make([]byte, size)}, nil) }); s != store.OK {
		t.Fatal(s, ss.Err())
	}
}

func TestAPullOfKeysGivesTheFirstAndWhatFitsOfTheOthers(t *testing.T) {
	st := open(t, store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, SegmentBytes: 1 << 20})
	ss := session(t, st)
	var keys []store.ArrivingKey
	for n, size := range []int{100_000, 300, 90_000, 2000, 600, 100} { // Above 32 KiB a value has pieces.
		k := key(ss, n)
		putBytes(t, ss, &k, size)
		keys = append(keys, store.ArrivingKey{Place: k.Place, Table: k.Table, Bytes: k.Bytes})
	}
	absent := key(ss, 100)
	keys = append(keys, store.ArrivingKey{Place: absent.Place, Table: absent.Table, Bytes: absent.Bytes})
	times := map[string]int{}
	var rounds []string
	for at := (store.PullCursor{}); len(keys) > 0; {
		u, seen, bytes := pullWaiting(t, ss, keys, at, 1000)
		if u.Has(0) != (u.Next != store.PullCursor{}) {
			t.Fatalf("the first is left: %v, and goes on at %+v", u.Has(0), u.Next)
		}
		if bytes > 32<<10+2000 {
			t.Errorf("%d bytes in one answer", bytes)
		}
		given, left := parted(keys, u)
		for _, k := range given {
			if seen[string(k.Bytes)] != 1 && string(k.Bytes) != string(absent.Bytes) {
				t.Errorf("%s counts as given, and is not among the entries", k.Bytes)
			}
		}
		for name, n := range seen {
			times[name] += n
		}
		rounds = append(rounds, fmt.Sprint(len(given)))
		keys, at = left, u.Next
	}
	// With the first piece of the first value come 300 and 600 bytes, and word of what is not there; then its other
	// pieces, with the last 100; and what is left after them.
	if got, want := fmt.Sprint(rounds), "[3 1 0 1 0 0 1 1]"; got != want {
		t.Errorf("given in rounds %s, want %s", got, want)
	}
	for name, n := range times {
		if n != 1 {
			t.Errorf("%s was given %d times", name, n)
		}
	}
}

func TestOneWaitForTheDiskBringsSeveralColdKeys(t *testing.T) {
	st := open(t, store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, SegmentBytes: 1 << 16, MemoryBytes: 1 << 20})
	ss := session(t, st)
	const n = 12_000
	for i := range n {
		k := key(ss, i)
		putBytes(t, ss, &k, 200)
	}
	var keys []store.ArrivingKey
	for i := range store.MaxPullKeys {
		k := key(ss, i)
		keys = append(keys, store.ArrivingKey{Place: k.Place, Table: k.Table, Bytes: k.Bytes})
	}
	last := key(ss, n-1)
	keys[store.MaxPullKeys-1] = store.ArrivingKey{Place: last.Place, Table: last.Table, Bytes: last.Bytes}
	u, seen, _ := pullWaiting(t, ss, keys, store.PullCursor{}, 1<<20)
	if u.Has(0) || u.Has(store.MaxPullKeys-1) {
		t.Error("the first, or what is in memory, was not given")
	}
	if len(seen) < 10 || len(seen) == len(keys) {
		t.Errorf("%d of %d keys were given, most of which are cold", len(seen), len(keys))
	}
}
