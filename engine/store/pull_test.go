package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// pulledKeys pulls a range and lists the keys of the records, with how often they came.
func pulledKeys(t testing.TB, ss *store.Session, r store.Range, maxBytes int, between func()) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for cursor, done := (store.PullCursor{}), false; !done; {
		ss.Begin()
		next, st := ss.Pull(r, cursor, maxBytes, func(entry []byte) {
			if p := record.PtrOf(entry); p.Table() < 16 {
				seen[string(p.Key())]++
			}
		})
		ss.End()
		switch st {
		case store.OK:
			done = next == store.PullCursor{}
			between()
		case store.Cold:
			if err := ss.Fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatal(st, ss.Err())
		}
		cursor = next
	}
	return seen
}

func TestAPullGivesEveryRecordOfItsRangeWhileTheIndexGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 5))
	st := open(t, store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, SegmentBytes: 1 << 20})
	ss, other := session(t, st), session(t, st)
	r := store.Range{First: record.Place(rng.Uint64() >> 2), Last: 1<<63 + record.Place(rng.Uint64()>>2)}
	want := map[string]bool{}
	for n := range 12_000 {
		k := key(other, n)
		if attempt(other, func() store.Status { return other.Put(&k, store.Write{Value: []byte("v")}, nil) }) != store.OK {
			t.Fatal(other.Err())
		}
		if r.First <= k.Place && k.Place <= r.Last {
			want[string(k.Bytes)] = true
		}
	}
	next := 12_000
	seen := pulledKeys(t, ss, r, 1+rng.IntN(40<<10), func() {
		for range 200 { // Others, so that sub-tables split under way.
			if k := key(other, next); next < 60_000 && (k.Place < r.First || k.Place > r.Last) {
				attempt(other, func() store.Status { return other.Put(&k, store.Write{}, nil) })
			}
			next++
		}
	})
	for k := range want {
		if seen[k] == 0 {
			t.Errorf("%s was not given", k)
		}
	}
	for k := range seen {
		if !want[k] {
			t.Errorf("%s was given, and is not of the range", k)
		}
	}
}

// runOnce runs the n-th operation of some clients, whose result is n.
func runOnce(t *testing.T, ss *store.Session, n int) store.Key {
	t.Helper()
	k, id := key(ss, n), store.OpID{Client: uint64(1 + n%7), Seq: uint64(1 + n/7)}
	if s := attempt(ss, func() store.Status {
		_, _, s := ss.Once(&k, id, func(*store.View, bool) store.Effect {
			return store.Effect{Write: &store.Write{}, Result: fmt.Append(nil, n)}
		})
		return s
	}); s != store.OK {
		t.Fatal(s, ss.Err())
	}
	return k
}

func TestResultsAreGivenFromReceiptsAndFromTheIndexAlike(t *testing.T) {
	for name, o := range map[string]store.Options{
		"memory":   {},
		"receipts": {Device: device.NewMemory(), Durability: store.EverySec},
		"index":    {Device: device.NewMemory(), Durability: store.EverySec},
	} {
		t.Run(name, func(t *testing.T) {
			o.Cluster = true
			st := open(t, o)
			ss := session(t, st)
			half := store.Range{First: 0, Last: 1<<63 - 1}
			var want, got []string
			for n := range 300 {
				if k := runOnce(t, ss, n); k.Place <= half.Last {
					want = append(want, fmt.Sprint(n))
				}
			}
			if name == "index" {
				st.LoseNotes(1<<63 - 1)
			}
			err := st.Completions(t.Context(), []store.Range{half}, func(entry []byte) {
				got = append(got, string(record.PtrOf(entry).Value()))
			})
			slices.Sort(want)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%v: results %v, want %v", err, got, want)
			}
		})
	}
}

func TestNoVersionPassesTheCeiling(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		rng := rand.New(rand.NewPCG(seedOf(t), 6))
		st := open(t, o)
		ss := session(t, st)
		for range 5000 {
			k := key(ss, rng.IntN(3))
			attempt(ss, func() store.Status {
				switch rng.IntN(4) {
				case 0:
					return ss.Delete(&k, nil)
				case 1:
					_, s := ss.Add(&k, 1)
					return s
				}
				return ss.Put(&k, store.Write{Value: make([]byte, 8)}, nil)
			})
			attempt(ss, func() store.Status {
				v, s := ss.Get(&k)
				if s == store.OK && v.Version > st.Ceiling() {
					t.Fatalf("version %d, ceiling %d", v.Version, st.Ceiling())
				}
				return s
			})
		}
	})
}
