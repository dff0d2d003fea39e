package store_test

import (
	"encoding/binary"
	"fmt"
	"testing"

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
