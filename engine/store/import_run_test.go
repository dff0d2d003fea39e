package store_test

import (
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

func TestOfAKeyThatALetterBringsTwiceTheHigherVersionStays(t *testing.T) {
	for _, versions := range [][]uint64{{1, 2}, {2, 1}, {2, 2}, {1, 3, 2}} {
		st, err := store.Open(store.Options{Cluster: true})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: 7, Puller: noPuller{t}})
		if err != nil {
			t.Fatal(err)
		}
		defer a.End()
		w, err := a.NewWorker()
		if err != nil {
			t.Fatal(err)
		}
		var letter []byte
		most := uint64(0)
		for _, v := range versions {
			at := len(letter)
			value := []byte{byte(v)}
			letter = append(letter, make([]byte, record.Size(3, len(value), false))...)
			record.Encode(letter[at:], &record.Header{Type: record.TypePut, Version: v}, []byte("key"), value, true)
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
