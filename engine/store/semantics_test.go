package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// put writes a value, or fails the test.
func put(t testing.TB, ss *store.Session, db int, key, value string, expire int64) {
	t.Helper()
	k := ss.Key(db, []byte(key))
	if s := until(t, ss, func() store.Status {
		return ss.Put(&k, store.Write{Value: []byte(value), ExpireAt: expire}, nil)
	}); s != store.OK {
		t.Fatalf("put %s: %v %v", key, s, ss.Err())
	}
}

func remove(t testing.TB, ss *store.Session, db int, key string) store.Status {
	t.Helper()
	k := ss.Key(db, []byte(key))
	return until(t, ss, func() store.Status { return ss.Delete(&k, nil) })
}

func get(t testing.TB, ss *store.Session, db int, key string) string {
	t.Helper()
	v := readKey(t, ss, db, []byte(key))
	if v == nil {
		return "(absent)"
	}
	return string(v)
}

// ticking gives a store a clock that the test moves.
func ticking(o store.Options) (store.Options, *atomic.Int64) {
	now := new(atomic.Int64)
	now.Store(1000)
	o.Now = now.Load
	return o, now
}

func TestAWatchedKeyIsUnchangedUntilItIsWritten(t *testing.T) {
	t.Parallel()
	const key = "watched"
	steps := map[string]struct {
		before, after func(t *testing.T, st *store.Store, ss *store.Session, now *atomic.Int64)
		same          bool
	}{
		"nothing happens to a value":       {before: putIt, same: true},
		"nothing happens to an absent key": {same: true},
		"a value is replaced":              {before: putIt, after: putIt},
		"a value is deleted":               {before: putIt, after: deleteIt},
		"a value is deleted and put again": {before: putIt, after: func(t *testing.T, st *store.Store, ss *store.Session, now *atomic.Int64) {
			deleteIt(t, st, ss, now)
			putIt(t, st, ss, now)
		}},
		"an absent key is put": {after: putIt},
		"an absent key comes and goes": {after: func(t *testing.T, st *store.Store, ss *store.Session, now *atomic.Int64) {
			putIt(t, st, ss, now)
			deleteIt(t, st, ss, now)
		}},
		"a value expires": {before: putBriefly, after: expireIt},
		"an expired key stays as it was": {before: func(t *testing.T, st *store.Store, ss *store.Session, now *atomic.Int64) {
			putBriefly(t, st, ss, now)
			now.Add(100)
		}, same: true},
		"an expired key is put": {before: func(t *testing.T, st *store.Store, ss *store.Session, now *atomic.Int64) {
			putBriefly(t, st, ss, now)
			now.Add(100)
		}, after: putIt},
		"an expired key comes and goes": {before: func(t *testing.T, st *store.Store, ss *store.Session, now *atomic.Int64) {
			putBriefly(t, st, ss, now)
			now.Add(100)
		}, after: func(t *testing.T, st *store.Store, ss *store.Session, now *atomic.Int64) {
			putIt(t, st, ss, now)
			deleteIt(t, st, ss, now)
		}},
		"an expired key is swept away": {before: func(t *testing.T, st *store.Store, ss *store.Session, now *atomic.Int64) {
			putBriefly(t, st, ss, now)
			now.Add(100)
		}, after: expireIt, same: true},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			forAll(t, func(t *testing.T, o store.Options) {
				o, now := ticking(o)
				st := open(t, o)
				ss := session(t, st)
				if step.before != nil {
					step.before(t, st, ss, now)
				}
				// The view is taken before the sweeper can come, or after it came: both count.
				ss.Begin()
				k := ss.Key(0, []byte(key))
				v, _ := ss.Get(&k)
				ss.End()
				if step.after != nil {
					step.after(t, st, ss, now)
				}
				ss.Begin()
				same, s := ss.Unchanged(&k, &v)
				ss.End()
				if s != store.OK || same != step.same {
					t.Fatalf("unchanged: %v %v, want %v", same, s, step.same)
				}
			})
		})
	}
}

func putIt(t *testing.T, _ *store.Store, ss *store.Session, _ *atomic.Int64) {
	put(t, ss, 0, "watched", "value", 0)
}

func putBriefly(t *testing.T, _ *store.Store, ss *store.Session, now *atomic.Int64) {
	put(t, ss, 0, "watched", "value", now.Load()+50)
}

func deleteIt(t *testing.T, _ *store.Store, ss *store.Session, _ *atomic.Int64) {
	if s := remove(t, ss, 0, "watched"); s != store.OK {
		t.Fatal(s)
	}
}

// expireIt lets the sweeper take the key away.
func expireIt(t *testing.T, st *store.Store, _ *store.Session, now *atomic.Int64) {
	now.Add(100)
	await.True(t, "the sweeper comes", func() bool {
		keys, _ := st.Count(0)
		return keys == 0
	})
}

func TestExpiredKeysAreGoneForReadersAndSweptAway(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, o store.Options) {
		o, now := ticking(o)
		st := open(t, o)
		ss := session(t, st)
		for n := range 100 {
			put(t, ss, 0, fmt.Sprintf("brief:%d", n), "x", now.Load()+100)
			put(t, ss, 0, fmt.Sprintf("long:%d", n), "x", now.Load()+100_000)
			put(t, ss, 0, fmt.Sprintf("ever:%d", n), "x", 0)
		}
		if keys, expires := st.Count(0); keys != 300 || expires != 200 {
			t.Fatalf("%d keys, %d expire; want 300, 200", keys, expires)
		}
		put(t, ss, 0, "brief:0", "now it stays", 0)
		put(t, ss, 0, "ever:0", "now it goes", now.Load()+50)
		if keys, expires := st.Count(0); keys != 300 || expires != 200 {
			t.Fatalf("%d keys, %d expire; want 300, 200", keys, expires)
		}
		now.Add(100)
		if got := get(t, ss, 0, "brief:1"); got != "(absent)" {
			t.Fatalf("an expired key is %q", got)
		}
		if s := remove(t, ss, 0, "brief:2"); s != store.NotFound {
			t.Fatalf("deleting an expired key: %v", s)
		}
		await.True(t, "the sweeper has been everywhere", func() bool {
			keys, expires := st.Count(0)
			return keys == 200 && expires == 100
		})
		if got := get(t, ss, 0, "brief:0"); got != "now it stays" {
			t.Fatalf("a key that was to stay is %q", got)
		}
	})
}

func TestTheSweeperTakesNoKeyThatWasJustWrittenAnew(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		o, now := ticking(o)
		st := open(t, o)
		ss := session(t, st)
		const keys = 200
		for round := range scale(60) {
			for n := range keys {
				put(t, ss, 0, fmt.Sprint(n), "brief", now.Load()+1)
			}
			now.Add(1) // From here on the sweeper is after them.
			for n := range keys {
				put(t, ss, 0, fmt.Sprint(n), "again", now.Load()+1_000_000)
			}
			for n := range keys {
				if got := get(t, ss, 0, fmt.Sprint(n)); got != "again" {
					t.Fatalf("round %d: key %d is %s", round, n, got)
				}
			}
		}
	})
}

func TestARandomKeyIsAnyOfThose(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		random := func(db int) (key string) {
			s := until(t, ss, func() store.Status {
				b, s := ss.RandomKey(db, nil)
				key = string(b)
				return s
			})
			if s == store.NotFound {
				return "(none)"
			}
			return key
		}
		if got := random(0); got != "(none)" {
			t.Fatalf("an empty database has the key %s", got)
		}
		for n := range 5000 { // Another database is much larger.
			put(t, ss, 1, fmt.Sprint(n), "x", 0)
		}
		for n := range 4 {
			put(t, ss, 0, fmt.Sprintf("few:%d", n), "x", 0)
		}
		seen := map[string]bool{}
		for range 200 {
			seen[random(1)] = true
			if got := random(0); len(got) != len("few:0") {
				t.Fatalf("key %s is not of this database", got)
			}
		}
		if len(seen) < 100 {
			t.Fatalf("200 random keys of 5000 are only %d different ones", len(seen))
		}
		if err := st.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if got := random(0); got != "(none)" {
			t.Fatalf("a truncated database has the key %s", got)
		}
	})
}

func TestUsageGrowsWithTheValue(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		ss := session(t, open(t, o))
		last := 0
		for _, n := range []int{0, 100, 1000, 3000, 100_000, 1_000_000} {
			put(t, ss, 0, "key", string(make([]byte, n)), 0)
			ss.Begin()
			k := ss.Key(0, []byte("key"))
			used, s := ss.Usage(&k)
			ss.End()
			if s != store.OK || used <= last || used < n || used > n+n/4+200 {
				t.Fatalf("%d bytes use %d (%v), after %d", n, used, s, last)
			}
			last = used
		}
		ss.Begin()
		defer ss.End()
		k := ss.Key(0, []byte("absent"))
		if _, s := ss.Usage(&k); s != store.NotFound {
			t.Fatalf("usage of an absent key: %v", s)
		}
	})
}

// lasting are the stores that outlive their process.
func lasting(t *testing.T, f func(t *testing.T, reopen func() (*store.Store, *store.Session))) {
	for _, d := range []store.Durability{store.Checkpoint, store.EverySec, store.Always} {
		t.Run(d.String(), func(t *testing.T) {
			dev := device.NewMemory()
			var st *store.Store
			f(t, func() (*store.Store, *store.Session) {
				if st != nil {
					if err := st.Close(); err != nil {
						t.Fatal(err)
					}
				}
				st = open(t, store.Options{Device: dev, Durability: d, SegmentBytes: 16 << 10, Databases: 4})
				return st, session(t, st)
			})
		})
	}
}

func TestTruncateAndSwapOutliveARestart(t *testing.T) {
	lasting(t, func(t *testing.T, reopen func() (*store.Store, *store.Session)) {
		st, ss := reopen()
		for db := range 4 {
			for n := range 200 {
				put(t, ss, db, fmt.Sprint(n), fmt.Sprintf("%d in %d", n, db), 0)
			}
		}
		if err := errors.Join(st.Truncate(1), st.Swap(2, 3)); err != nil {
			t.Fatal(err)
		}
		put(t, ss, 1, "7", "new in 1", 0)
		for range 3 {
			for db, want := range map[int]string{0: "7 in 0", 1: "new in 1", 2: "7 in 3", 3: "7 in 2"} {
				if got := get(t, ss, db, "7"); got != want {
					t.Fatalf("key 7 of database %d is %q, want %q", db, got, want)
				}
			}
			for db, want := range map[int]int64{0: 200, 1: 1, 2: 200, 3: 200} {
				if keys, _ := st.Count(db); keys != want || len(scanned(t, ss, db)) != int(want) {
					t.Fatalf("database %d has %d keys, a scan sees %d, want %d", db, keys, len(scanned(t, ss, db)), want)
				}
			}
			st, ss = reopen()
		}
		if err := st.TruncateAll(); err != nil {
			t.Fatal(err)
		}
		st, ss = reopen()
		for db := range 4 {
			if keys, _ := st.Count(db); keys != 0 || len(scanned(t, ss, db)) != 0 {
				t.Fatalf("database %d has %d keys after all were truncated", db, keys)
			}
		}
	})
}

func TestTheNumberOfDatabasesGrowsButLosesNone(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Device: dev, Durability: store.EverySec, Databases: 2}
	reopened := func(databases int) (*store.Store, *store.Session) {
		o.Databases = databases
		st := open(t, o)
		return st, session(t, st)
	}
	st, ss := reopened(2)
	put(t, ss, 1, "old", "of database 1", 0)
	if err := st.Truncate(1); err != nil { // It has table 2 now.
		t.Fatal(err)
	}
	put(t, ss, 1, "new", "of database 1", 0)
	st.Close()

	st, ss = reopened(300)
	put(t, ss, 2, "new", "of database 2", 0)
	put(t, ss, 299, "last", "of database 299", 0)
	for db, want := range map[int]int64{1: 1, 2: 1, 299: 1, 3: 0} {
		if keys, _ := st.Count(db); keys != want {
			t.Fatalf("database %d has %d keys, want %d", db, keys, want)
		}
	}
	st.Close()

	st, ss = reopened(300)
	if got := get(t, ss, 1, "new") + ", " + get(t, ss, 2, "new") + ", " + get(t, ss, 299, "last"); got != "of database 1, of database 2, of database 299" {
		t.Fatalf("databases share a table: %s", got)
	}
	if keys, _ := st.Count(299); keys != 1 {
		t.Fatalf("database 299 has %d keys, want 1", keys)
	}
	st.Close()
	o.Databases, o.SegmentBytes = 2, 64<<10
	if _, err := store.Open(o); err == nil {
		t.Fatal("databases vanished without a word")
	}
}

// On a node of a cluster the new ones have the tables that they have on all nodes.
func TestTheNumberOfDatabasesOfANodeOfAClusterGrows(t *testing.T) {
	dev := device.NewMemory()
	t.Cleanup(dev.Close)
	o := store.Options{Device: dev, Durability: store.EverySec, Cluster: true, Databases: 2}
	ss := session(t, open(t, o))
	put(t, ss, 1, "old", "of database 1", 0)
	o.Device, o.Databases = dev.Crash(), 5
	ss = session(t, open(t, o))
	put(t, ss, 4, "new", "of database 4", 0)
	if got := get(t, ss, 1, "old") + ", " + get(t, ss, 4, "new"); got != "of database 1, of database 4" {
		t.Errorf("they have %s", got)
	}
	if key := ss.Key(4, nil); key.Table != 4 {
		t.Errorf("the table of database 4 is %d: heirs would not know it", key.Table)
	}
}

// twins are pairs of keys that the index cannot tell apart.
var twins = [][2]string{{"twin:106079", "twin:876719"}, {"twin:385239", "twin:1981708"}}

func TestKeysThatTheIndexCannotTellApartAreDifferentKeys(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		for _, pair := range twins {
			a, b := record.PlaceOf(0, []byte(pair[0])), record.PlaceOf(0, []byte(pair[1]))
			if index.Known(a) != index.Known(b) || a == b {
				t.Fatalf("%v are no twins: %x %x", pair, a, b)
			}
			put(t, ss, 0, pair[0], "one", 0)
			if got := get(t, ss, 0, pair[1]); got != "(absent)" {
				t.Fatalf("the twin of a key is %q", got)
			}
			put(t, ss, 0, pair[1], "two", 0)
			put(t, ss, 0, pair[0], "uno", 0)
			if got := get(t, ss, 0, pair[0]) + get(t, ss, 0, pair[1]); got != "unotwo" {
				t.Fatalf("twins are %q", got)
			}
			if s := remove(t, ss, 0, pair[0]); s != store.OK {
				t.Fatal(s)
			}
			if got := get(t, ss, 0, pair[0]) + get(t, ss, 0, pair[1]); got != "(absent)two" {
				t.Fatalf("twins are %q", got)
			}
			remove(t, ss, 0, pair[1])
		}
	})
}

func TestATransactionMayHoldTwins(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		for round := range 3 { // Absent, then present, then gone again.
			ss.Begin()
			var keys []store.Key
			for _, pair := range twins {
				keys = append(keys, ss.Key(0, []byte(pair[0])), ss.Key(0, []byte(pair[1])))
			}
			if s := ss.Lock(keys); s != store.OK {
				t.Fatal(s, ss.Err())
			}
			for i := range keys {
				v, s := ss.Get(&keys[i])
				if want := fmt.Sprintf("%d of %d", i, round-1); round > 0 && (s != store.OK || string(v.Value) != want) {
					t.Fatalf("twin %d is %q (%v), want %q", i, v.Value, s, want)
				}
				ss.Put(&keys[i], store.Write{Value: fmt.Appendf(nil, "%d of %d", i, round)}, nil)
			}
			if s := ss.Commit(); s != store.OK {
				t.Fatal(s, ss.Err())
			}
			ss.Seal()
			ss.End()
		}
		if keys, _ := st.Count(0); keys != 4 {
			t.Fatalf("%d keys, want 4", keys)
		}
	})
}

func TestALargeTransactionOnNewKeysIsPossible(t *testing.T) {
	o := store.Options{SegmentBytes: record.MaxSegmentBytes}
	st := open(t, o)
	ss := session(t, st)
	ss.Begin()
	keys := make([]store.Key, scale(60_000))
	for i := range keys {
		keys[i] = ss.Key(0, fmt.Appendf(nil, "large transaction:%d", i))
	}
	if s := ss.Lock(keys); s != store.OK {
		t.Fatal(s, ss.Err())
	}
	for i := range keys {
		ss.Put(&keys[i], store.Write{Value: []byte("x")}, nil)
	}
	if s := ss.Commit(); s != store.OK {
		t.Fatal(s, ss.Err())
	}
	ss.End()
	if n, _ := st.Count(0); n != int64(len(keys)) {
		t.Fatalf("%d keys, want %d", n, len(keys))
	}
}

func TestWhatDoesNotFitASegmentIsRefused(t *testing.T) {
	for _, d := range []store.Durability{store.None, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			st := open(t, store.Options{Device: device.NewMemory(), Durability: d, SegmentBytes: 4096})
			ss := session(t, st)
			last := store.OK
			for n := 3000; n < 5000; n++ {
				ss.Begin()
				k := ss.Key(0, bytes.Repeat([]byte{'k'}, n))
				s := ss.Put(&k, store.Write{Value: []byte("v")}, nil)
				if s == store.OK {
					if last != store.OK {
						t.Fatalf("a key of %d bytes fits, a shorter one does not", n)
					}
					if s := ss.Delete(&k, nil); s != store.OK {
						t.Fatalf("a key of %d bytes cannot be deleted: %v %v", n, s, ss.Err())
					}
				} else if s != store.TooLarge || !errors.Is(ss.Err(), store.ErrTooLarge) {
					t.Fatalf("a key of %d bytes: %v %v", n, s, ss.Err())
				}
				last = s
				ss.Seal()
				ss.End()
			}
			if last != store.TooLarge {
				t.Fatal("no key was too large")
			}
		})
	}
}

func TestTransactionsOfEverySizeFitOrAreRefused(t *testing.T) {
	for _, d := range []store.Durability{store.None, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			o := store.Options{Device: device.NewMemory(), Durability: d, SegmentBytes: 4096}
			st := open(t, o)
			ss := session(t, st)
			fits, refused := 0, 0
			for n := range 40 { // 40 entries of 96 bytes, n of them of 104: about a segment.
				ss.Begin()
				var keys []store.Key
				for i := range 40 {
					keys = append(keys, ss.Key(0, fmt.Appendf(nil, "%02d", i)))
				}
				if s := ss.Lock(keys); s != store.OK {
					t.Fatal(s, ss.Err())
				}
				for i := range keys {
					size := 70
					if i < n {
						size = 78
					}
					ss.Put(&keys[i], store.Write{Value: bytes.Repeat([]byte{'v'}, size)}, nil)
				}
				switch s := ss.Commit(); s {
				case store.OK:
					fits++
				case store.TooLarge:
					refused++
				default:
					t.Fatal(s, ss.Err())
				}
				ss.Seal()
				ss.End()
			}
			if fits == 0 || refused == 0 {
				t.Fatalf("%d fit, %d were refused: the test misses the border", fits, refused)
			}
			scanned(t, ss, 0)
		})
	}
}

func TestAVeryLargeValueIsKept(t *testing.T) {
	bytesOf := 40 << 20
	if testing.Short() {
		bytesOf = 8 << 20
	}
	for _, o := range []store.Options{
		{SegmentBytes: 1 << 20},
		{SegmentBytes: 1 << 20, Durability: store.EverySec, Device: device.NewMemory(), MemoryBytes: 24 << 20},
	} {
		t.Run(o.Durability.String(), func(t *testing.T) {
			st := open(t, o)
			ss := session(t, st)
			value := pattern(7, scale(bytesOf)/8)
			put(t, ss, 0, "large", string(value), 0)
			if got := readKey(t, ss, 0, []byte("large")); !bytes.Equal(got, value) {
				t.Fatalf("%d bytes came back of %d", len(got), len(value))
			}
			put(t, ss, 0, "large", "small", 0)
			await.True(t, "its memory comes back", func() bool { return st.Metrics().LiveBytes < 1<<20 })
		})
	}
}
