package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// colliding makes keys of table 0 that all have the same place, as anybody can who knows the hash: the product of two words
// of a key is part of it, and the first of them is chosen so that it counts as zero.
func colliding(t *testing.T, n int) [][]byte {
	t.Helper()
	const secret = 0xbe4ba423396cfeb8 // the first word of XXH3's, to which the table's number is added
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(binary.LittleEndian.AppendUint64(nil, secret), "%08d{x}0123456789abc", i)
		if record.PlaceOf(0, keys[i]) != record.PlaceOf(0, keys[0]) {
			t.Fatalf("key %d is elsewhere", i)
		}
	}
	return keys
}

func TestKeysThatWereChosenToCollideAreRefused(t *testing.T) {
	const most, tried = 128, 400
	keys := colliding(t, tried)
	for _, dir := range []string{"", t.TempDir()} {
		for name, write := range map[string]func(ss *store.Session, keys []store.Key) (int, store.Status){
			"one by one": func(ss *store.Session, keys []store.Key) (n int, st store.Status) {
				for i := range keys {
					if st = ss.Put(&keys[i], store.Write{Value: []byte("v")}, nil); st != store.OK {
						return i, st
					}
				}
				return len(keys), st
			},
			"counters": func(ss *store.Session, keys []store.Key) (n int, st store.Status) {
				for i := range keys {
					if _, st = ss.Add(&keys[i], 1); st != store.OK {
						return i, st
					}
				}
				return len(keys), st
			},
			"a transaction": func(ss *store.Session, keys []store.Key) (n int, st store.Status) {
				if st = ss.Lock(keys); st == store.OK {
					ss.Abort()
					return len(keys), st
				}
				return 0, st
			},
		} {
			o := store.Options{}
			if dir != "" {
				o = store.Options{Dir: filepath.Join(dir, name), Durability: store.EverySec}
			}
			ss := session(t, open(t, o))
			ss.Begin()
			var named []store.Key
			for _, k := range keys {
				named = append(named, ss.Key(0, k))
			}
			n, st := write(ss, named)
			if st != store.TooLarge || !errors.Is(ss.Err(), store.ErrTooLarge) || n > most {
				t.Errorf("%s: %d of %d were taken, then %v, %v", name, n, tried, st, ss.Err())
			}
			if n, st := write(ss, named[:most]); n != most || st != store.OK {
				t.Errorf("%s: of %d only %d were taken, then %v, %v", name, most, n, st, ss.Err())
			}
			ss.End()
		}
	}
}

func TestKeysThatCollideAreKeptApart(t *testing.T) {
	keys := colliding(t, 100)
	forAll(t, func(t *testing.T, o store.Options) {
		ss := session(t, open(t, o))
		ss.Begin()
		defer ss.End()
		var named []store.Key
		for _, k := range keys {
			named = append(named, ss.Key(0, k))
		}
		if st := ss.Lock(named); st != store.OK {
			t.Fatal(st, ss.Err())
		}
		for i := range named {
			if st := ss.Put(&named[i], store.Write{Value: named[i].Bytes}, nil); st != store.OK {
				t.Fatal(st, ss.Err())
			}
		}
		if st := ss.Commit(); st != store.OK {
			t.Fatal(st, ss.Err())
		}
		for i := range named {
			if v, st := ss.Get(&named[i]); st != store.OK || !bytes.Equal(v.Value, named[i].Bytes) {
				t.Fatalf("key %d: %v, %q", i, st, v.Value)
			}
		}
	})
}
