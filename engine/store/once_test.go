package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

// onceKeys are keys of eight bytes, some with hash tags, and a few others.
func onceKeys(r *rand.Rand) [][]byte {
	keys := [][]byte{{}, []byte("seven.."), []byte("nine....."), []byte("{tag}rest"), []byte("{a}bcdef"), []byte("abc{d}ef"), []byte("{{{{{{{{"), make([]byte, 8)}
	for range 3000 {
		keys = append(keys, binary.LittleEndian.AppendUint64(nil, r.Uint64()))
	}
	for n := range uint64(3000) {
		keys = append(keys, binary.LittleEndian.AppendUint64(nil, n))
	}
	return keys
}

func TestACopyIsWhatAReadShows(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, o store.Options) {
		r := rand.New(rand.NewPCG(seedOf(t), 1))
		o, now := ticking(o)
		st := open(t, o)
		ss := session(t, st)
		keys := onceKeys(r)
		for round := range 4 {
			for _, k := range keys {
				changeAtRandom(t, ss, r, k, now.Load())
			}
			if round == 2 {
				if err := st.Checkpoint(context.Background()); err != nil && o.Durability != store.None {
					t.Fatal(err)
				}
			}
			now.Add(10)
			for _, k := range keys {
				for db := range 2 {
					compareCopy(t, ss, db, k, make([]byte, r.IntN(40)))
				}
			}
		}
	})
}

// changeAtRandom puts, deletes or leaves a key of one of two databases.
func changeAtRandom(t *testing.T, ss *store.Session, r *rand.Rand, k []byte, now int64) {
	t.Helper()
	db, expire := r.IntN(2), int64(0)
	if r.IntN(4) == 0 {
		expire = now + int64(r.IntN(30))
	}
	size := 8
	if r.IntN(2) == 0 {
		size = r.IntN(40)
	}
	switch r.IntN(5) {
	case 0:
		remove(t, ss, db, string(k))
	case 1, 2, 3:
		put(t, ss, db, string(k), string(bytes.Repeat([]byte{byte(r.Uint32())}, size)), expire)
	}
}

func compareCopy(t *testing.T, ss *store.Session, db int, k, dst []byte) {
	t.Helper()
	want := readKey(t, ss, db, k)
	n := 0
	s := until(t, ss, func() (s store.Status) {
		n, s = ss.Copy(db, k, dst)
		return s
	})
	switch {
	case s == store.NotFound && want == nil:
	case s != store.OK || want == nil:
		t.Fatalf("copy of %x: %v %v, read %x", k, s, ss.Err(), want)
	case n != len(want) || !bytes.Equal(dst[:min(n, len(dst))], want[:min(n, len(dst))]):
		t.Fatalf("copy of %x: %d bytes, %x; read %x", k, n, dst, want)
	}
}

func TestCountsOfManyAddUp(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		const workers, rounds, keys = 4, 2000, 7
		st := open(t, o)
		var all sync.WaitGroup
		for range workers {
			ss := session(t, st)
			all.Go(func() {
				for n := range rounds {
					k := fmt.Appendf(nil, "count %2d", n%keys)
					if s := until(t, ss, func() (s store.Status) {
						_, s = ss.Count(0, k, 3)
						return s
					}); s != store.OK {
						t.Errorf("count: %v %v", s, ss.Err())
						return
					}
				}
			})
		}
		all.Wait()
		ss, sum := session(t, st), uint64(0)
		for n := range keys {
			sum += binary.LittleEndian.Uint64(readKey(t, ss, 0, fmt.Appendf(nil, "count %2d", n)))
		}
		if sum != 3*workers*rounds {
			t.Fatalf("the counters add up to %d, want %d", sum, 3*workers*rounds)
		}
	})
}

// A word of two equal halves never shows them different, whoever writes it meanwhile.
func TestACopyIsNeverTorn(t *testing.T) {
	st := open(t, store.Options{})
	writer, reader := session(t, st), session(t, st)
	k := []byte("one word")
	const step = 1<<32 | 1
	until(t, writer, func() store.Status {
		_, s := writer.Count(0, k, 0)
		return s
	})
	var all sync.WaitGroup
	all.Go(func() {
		for range 200_000 {
			writer.Begin()
			writer.Count(0, k, step)
			writer.End()
		}
	})
	dst := make([]byte, 8)
	for range 200_000 {
		reader.Begin()
		n, s := reader.Copy(0, k, dst)
		reader.End()
		word := binary.LittleEndian.Uint64(dst)
		if n != 8 || s != store.OK || word>>32 != word&(1<<32-1) {
			t.Errorf("copied %d bytes, %v, %x", n, s, word)
			break
		}
	}
	all.Wait()
}

func TestCopyAndCountSeeTheOpenTransaction(t *testing.T) {
	st := open(t, store.Options{})
	ss := session(t, st)
	put(t, ss, 0, "counter!", "\x05\x00\x00\x00\x00\x00\x00\x00", 0)
	ss.Begin()
	defer ss.End()
	k := []byte("counter!")
	if s := ss.Lock([]store.Key{ss.Key(0, k)}); s != store.OK {
		t.Fatal(s)
	}
	if sum, s := ss.Count(0, k, 2); sum != 7 || s != store.OK {
		t.Fatal(sum, s)
	}
	dst := make([]byte, 8)
	if _, s := ss.Copy(0, k, dst); s != store.OK || dst[0] != 7 {
		t.Fatal(dst, s)
	}
	if s := ss.Commit(); s != store.OK {
		t.Fatal(s)
	}
}
