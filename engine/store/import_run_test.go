package store_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

func TestOfAKeyThatALetterBringsTwiceTheHigherVersionStays(t *testing.T) {
	for _, versions := range [][]uint64{{1, 2}, {2, 1}, {2, 2}, {1, 3, 2}} {
		st, w := arriving(t)
		var letter []byte
		most := uint64(0)
		for _, v := range versions {
			letter = appendPut(letter, "key", v)
			most = max(most, v)
		}
		if err := w.Import(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
		if keys, _ := st.Count(0); keys != 1 {
			t.Errorf("%v: %d keys", versions, keys)
		}
		ss := session(t, st)
		ss.Begin()
		k := ss.Key(0, []byte("key"))
		view, s := ss.Get(&k)
		if s != store.OK || view.Version != most || view.Value[0] != byte(most) {
			t.Errorf("%v: status %v, version %d", versions, s, view.Version)
		}
		ss.End()
	}
}

// arriving is a store to which all places come, up to version 7, and a worker for what comes.
func arriving(t *testing.T) (*store.Store, *store.ImportWorker) {
	t.Helper()
	st, err := store.Open(store.Options{Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: 7, Puller: noPuller{t}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.End)
	w, err := a.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	return st, w
}

// appendPut appends an entry whose value is its version.
func appendPut(letter []byte, key string, v uint64) []byte {
	at := len(letter)
	letter = append(letter, make([]byte, record.Size(len(key), 1, false))...)
	record.Encode(letter[at:], &record.Header{Type: record.TypePut, Version: v}, []byte(key), []byte{byte(v)}, true)
	return letter
}

func TestASourceThatTellsAWrongPlaceIsNotBelieved(t *testing.T) {
	st, w := arriving(t)
	letter := appendPut(nil, "key", 1)
	wrong := index.Known(record.PlaceOf(0, []byte("another key")))
	if err := w.ImportKnown(t.Context(), letter, binary.LittleEndian.AppendUint64(nil, uint64(wrong))); err == nil {
		t.Error("it was believed")
	}
	if err := w.Import(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	if keys, _ := st.Count(0); keys != 1 {
		t.Errorf("%d keys", keys)
	}
}

func TestPlacesThatAreNotKnownAreMadeOfTheirKeys(t *testing.T) {
	st, w := arriving(t)
	var letter, known []byte
	for n := range 100 {
		key := fmt.Sprint("key", n)
		letter = appendPut(letter, key, 1)
		place := index.Known(record.PlaceOf(0, []byte(key)))
		if n%3 == 0 {
			place = 0
		}
		if n < 90 { // Of the others nothing is said.
			known = binary.LittleEndian.AppendUint64(known, uint64(place))
		}
	}
	if err := w.ImportKnown(t.Context(), letter, known); err != nil {
		t.Fatal(err)
	}
	ss := session(t, st)
	ss.Begin()
	defer ss.End()
	for n := range 100 {
		k := ss.Key(0, fmt.Append(nil, "key", n))
		if _, s := ss.Get(&k); s != store.OK {
			t.Errorf("key %d: %v", n, s)
		}
	}
}

// Entries of all kinds follow each other in a letter whose places are told: each is taken as if it were alone.
func TestEntriesOfAllKindsAreTakenInOneLetter(t *testing.T) {
	st, w := arriving(t)
	const n = 400
	far := time.Now().Add(time.Hour).UnixMilli()
	var letter, known []byte
	kind := func(i int) (h record.Header, takenAs int) { // in which database; -1 in none
		h = record.Header{Type: record.TypePut, Version: 1}
		switch i % 8 {
		case 3:
			h.ExpireAt = far
		case 4, 5:
			h.Table = 1
			return h, 1
		case 6:
			h.Type = record.TypeTombstone
			return h, -1
		}
		return h, 0
	}
	key := func(i int) []byte { return fmt.Append(nil, "key", i) }
	for i := range n {
		h, _ := kind(i)
		at := len(letter)
		letter = append(letter, make([]byte, record.Size(len(key(i)), 4, h.ExpireAt != 0))...)
		record.Encode(letter[at:], &h, key(i), binary.LittleEndian.AppendUint32(nil, uint32(i)), true)
		place := index.Known(record.PlaceOf(h.Table, key(i)))
		if h.Type != record.TypePut {
			place = 0
		}
		known = binary.LittleEndian.AppendUint64(known, uint64(place))
	}
	if err := w.ImportKnown(t.Context(), letter, known); err != nil {
		t.Fatal(err)
	}
	want := [2]int64{}
	ss := session(t, st)
	ss.Begin()
	defer ss.End()
	for i := range n {
		h, db := kind(i)
		if db < 0 {
			continue
		}
		want[db]++
		k := ss.Key(db, key(i))
		view, s := ss.Get(&k)
		if s != store.OK || binary.LittleEndian.Uint32(view.Value) != uint32(i) || view.ExpireAt != h.ExpireAt {
			t.Fatalf("key %d: %v, %x, expires at %d", i, s, view.Value, view.ExpireAt)
		}
	}
	for db, n := range want {
		if keys, _ := st.Count(db); keys != n {
			t.Errorf("database %d has %d keys, want %d", db, keys, n)
		}
	}
}

// malformed are letters whose second entry is none.
func malformed() map[string][]byte {
	made := func(change func(b []byte) []byte) []byte {
		first := appendPut(nil, "first", 1)
		return append(first, change(appendPut(nil, "second", 1))...)
	}
	length := func(n uint32) []byte {
		return made(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[4:], n); return b })
	}
	return map[string][]byte{
		"no length":                     length(0),
		"less than a header":            length(8),
		"less than its key":             length(24),
		"what no entry has":             made(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[4:], 36); return append(b, make([]byte, 8)...) }),
		"more than there is":            length(1 << 10),
		"more than anybody has":         length(1<<32 - 8),
		"a key that is too long":        made(func(b []byte) []byte { binary.LittleEndian.PutUint16(b[2:], 1000); return b }),
		"half of an entry":              made(func(b []byte) []byte { return b[:16] }),
		"half of a front":               made(func(b []byte) []byte { return b[:4] }),
		"what begins within an entry":   made(func(b []byte) []byte { return b[8:] }),
		"a time and no room for it":     made(func(b []byte) []byte { b[1] |= 0x08; binary.LittleEndian.PutUint32(b[4:], 32); return b }),
		"a seal that ends before it is": made(func(b []byte) []byte { copy(b, []byte{byte(record.TypeSeal), 0, 0, 0, 0, 0, 0, 0}); return b }),
	}
}

func TestWhatIsNotMadeOfWholeEntriesIsRefusedAndTheImportGoesOn(t *testing.T) {
	for name, letter := range malformed() {
		t.Run(name, func(t *testing.T) {
			live, w := arriving(t)
			copies := open(t, store.Options{Cluster: true})
			im, err := copies.NewImporter(store.ImportOptions{Foreign: true})
			if err != nil {
				t.Fatal(err)
			}
			defer im.Abort()
			copier, err := im.NewWorker()
			if err != nil {
				t.Fatal(err)
			}
			told, teller := arriving(t)
			var known []byte
			for _, key := range []string{"first", "second"} {
				known = binary.LittleEndian.AppendUint64(known, uint64(index.Known(record.PlaceOf(0, []byte(key)))))
			}
			for st, worker := range map[*store.Store]*store.ImportWorker{live: w, copies: copier, told: teller} {
				err := error(nil)
				if worker == teller {
					err = worker.ImportKnown(t.Context(), letter, known)
				} else {
					err = worker.Import(t.Context(), letter)
				}
				if !errors.Is(err, store.ErrMalformedEntry) {
					t.Errorf("it is told %v", err)
				}
				if err := worker.Import(t.Context(), appendPut(nil, "third", 1)); err != nil {
					t.Error(err)
				}
				if keys, _ := st.Count(0); keys != 2 {
					t.Errorf("%d keys, want that before the malformed entry, and one that came later", keys)
				}
			}
		})
	}
}

func TestAVoidWhosePlaceIsToldIsNotBelieved(t *testing.T) {
	_, w := arriving(t)
	void := make([]byte, 8)
	record.EncodeVoid(void, len(void))
	if err := w.ImportKnown(t.Context(), void, binary.LittleEndian.AppendUint64(nil, 1<<40)); err == nil {
		t.Error("a place of nothing was believed")
	}
}
