package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// limited are stores with little memory and the given policy.
func limited(t *testing.T, p store.Policy, f func(t *testing.T, o store.Options)) {
	for _, d := range []store.Durability{store.None, store.Checkpoint, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			o := store.Options{SegmentBytes: 16 << 10, Heads: 2, MemoryBytes: 6 << 20, Policy: p, Durability: d}
			if d != store.None {
				o.Device = device.NewMemory()
			}
			f(t, o)
		})
	}
}

func TestAFullMemoryRefusesWritesUntilKeysAreDeleted(t *testing.T) {
	limited(t, store.Refuse, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		value := strings.Repeat("x", 400)
		keys := 0
		s := store.OK
		for s == store.OK {
			if keys > 50_000 {
				t.Fatalf("nothing is refused at %d bytes of memory", st.Metrics().MemoryBytes)
			}
			if s = tryPut(ss, fmt.Sprint(keys), value); s == store.OK {
				keys++
			}
		}
		if s != store.Refused || !errors.Is(ss.Err(), store.ErrMemoryFull) {
			t.Fatalf("at the limit: %v %v", s, ss.Err())
		}
		if used := st.Metrics().MemoryBytes; used > o.MemoryBytes+16*int64(o.SegmentBytes) {
			t.Fatalf("%d bytes are in use, the limit is %d", used, o.MemoryBytes)
		}
		for n := range keys {
			if got := get(t, ss, 0, fmt.Sprint(n)); got != value {
				t.Fatalf("at the limit key %d is %.20q", n, got)
			}
		}
		for n := 0; n < keys; n += 2 {
			if s := remove(t, ss, 0, fmt.Sprint(n)); s != store.OK {
				t.Fatalf("at the limit a deletion is %v: %v", s, ss.Err())
			}
		}
		await.True(t, "deletions make room", func() bool { return tryPut(ss, "again", value) == store.OK })
	})
}

func TestRaisingTheLimitEndsTheRefusal(t *testing.T) {
	limited(t, store.Refuse, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		value := strings.Repeat("x", 400)
		for n := 0; tryPut(ss, fmt.Sprint(n), value) == store.OK; n++ {
		}
		st.SetMemoryLimit(2*o.MemoryBytes, store.Refuse)
		await.True(t, "more memory is taken", func() bool { return tryPut(ss, "again", value) == store.OK })
	})
}

func TestACacheForgetsButNeverLies(t *testing.T) {
	t.Parallel()
	limited(t, store.Evict, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		st := open(t, o)
		sessions := []*store.Session{session(t, st), session(t, st)} // On different heads.
		last := map[string]string{}
		const keys = 9000
		for n := range 10_000 + scale(30_000) {
			ss := sessions[rng.IntN(2)]
			key := fmt.Sprint(rng.IntN(keys))
			switch value := fmt.Sprintf("%s=%d%s", key, n, strings.Repeat("-", rng.IntN(600))); rng.IntN(10) {
			case 0:
				remove(t, ss, 0, key)
				delete(last, key)
			default:
				put(t, ss, 0, key, value, 0)
				last[key] = value
			}
		}
		if used := st.Metrics().MemoryBytes; used > o.MemoryBytes+16*int64(o.SegmentBytes) {
			t.Fatalf("%d bytes are in use, the limit is %d", used, o.MemoryBytes)
		}
		found := honest(t, sessions[0], keys, last)
		if found == 0 || st.Metrics().Evicted == 0 {
			t.Fatalf("%d keys left, %d evicted", found, st.Metrics().Evicted)
		}
		await.True(t, "what is counted is there", func() bool {
			n, _ := st.Count(0)
			found = honest(t, sessions[0], keys, last)
			return n == int64(found)
		})
		if o.Device == nil {
			return
		}
		reopened(t, st, o, func(ss *store.Session) {
			if again := honest(t, ss, keys, last); o.Durability == store.EverySec && again > found {
				t.Fatalf("%d keys came back that were forgotten", again-found)
			}
		})
	})
}

// honest counts the keys that are there, and fails if one is not what it was
// last.
func honest(t *testing.T, ss *store.Session, keys int, last map[string]string) (found int) {
	t.Helper()
	for n := range keys {
		key := fmt.Sprint(n)
		got := get(t, ss, 0, key)
		if got == "(absent)" {
			continue
		}
		found++
		if got != last[key] {
			t.Fatalf("key %s is %.30q, was last %.30q", key, got, last[key])
		}
	}
	return found
}

func TestAChangeOfPolicyIsHeard(t *testing.T) {
	limited(t, store.Refuse, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		value := strings.Repeat("x", 400)
		for n := 0; tryPut(ss, fmt.Sprint(n), value) == store.OK; n++ {
		}
		st.SetMemoryLimit(o.MemoryBytes, store.Evict)
		await.True(t, "a cache forgets", func() bool { return tryPut(ss, "again", value) == store.OK })
	})
}

func TestGarbageIsBounded(t *testing.T) {
	for _, d := range []store.Durability{store.None, store.Checkpoint, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			o := store.Options{SegmentBytes: 16 << 10, Heads: 2, Durability: d}
			if d != store.None {
				o.Device = device.NewMemory()
			}
			st := open(t, o)
			ss := session(t, st)
			for n := range scale(30_000) {
				put(t, ss, 0, fmt.Sprint(n%100), strings.Repeat("x", n%300), 0)
			}
			await.True(t, "the log shrinks to what is alive", func() bool { return st.Metrics().LogBytes < 500<<10 })
			for n := range 100 {
				if got := get(t, ss, 0, fmt.Sprint(n)); got == "(absent)" {
					t.Fatalf("key %d is gone", n)
				}
			}
		})
	}
}

func TestTombstonesAreBounded(t *testing.T) {
	t.Parallel()
	for _, d := range []store.Durability{store.Checkpoint, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			o := store.Options{SegmentBytes: 16 << 10, Heads: 2, Durability: d, Device: device.NewMemory()}
			st := open(t, o)
			idle, ss := session(t, st), session(t, st) // An idle head keeps its first segment open.
			put(t, idle, 0, "idle", "x", 0)
			for n := range 500 { // Records that stay as they are.
				put(t, ss, 0, fmt.Sprintf("stays:%d", n), strings.Repeat("x", 100), 0)
			}
			for n := range scale(30_000) { // Each key lives once.
				key := fmt.Sprintf("passes:%d", n)
				put(t, ss, 0, key, "x", 0)
				if s := remove(t, ss, 0, key); s != store.OK {
					t.Fatal(s, ss.Err())
				}
			}
			await.True(t, "tombstones go", func() bool { return st.Metrics().LogBytes < 700<<10 })
		})
	}
}

func TestATruncatedColdDatabaseLeavesDiskAndIndex(t *testing.T) {
	for _, all := range []bool{true, false} {
		t.Run(fmt.Sprintf("all=%v", all), func(t *testing.T) {
			dev := device.NewMemory()
			o := store.Options{SegmentBytes: 16 << 10, Heads: 2, Durability: store.EverySec, Device: dev, MemoryBytes: 512 << 10}
			st := open(t, o)
			ss := session(t, st)
			put(t, ss, 1, "stays", "x", 0)
			for n := range scale(20_000) { // Much more than memory.
				put(t, ss, 0, fmt.Sprint(n), strings.Repeat("x", 100), 0)
			}
			var err error
			if all {
				err = st.TruncateAll()
			} else {
				err = st.Truncate(0)
			}
			if err != nil {
				t.Fatal(err)
			}
			await.True(t, "the disk is free", func() bool {
				used, _, _ := dev.Usage()
				return used < 800<<10
			})
		})
	}
}

func TestColdRecordsThatExpiredLeaveTheDisk(t *testing.T) {
	t.Parallel()
	dev := device.NewMemory()
	o, now := ticking(store.Options{SegmentBytes: 16 << 10, Heads: 2, Durability: store.EverySec, Device: dev, MemoryBytes: 512 << 10})
	st := open(t, o)
	ss := session(t, st)
	for n := range scale(20_000) {
		put(t, ss, 0, fmt.Sprint(n), strings.Repeat("x", 100), now.Load()+1000)
	}
	now.Add(2000)
	await.True(t, "the disk is free", func() bool {
		used, _, _ := dev.Usage()
		return used < 800<<10
	})
}
