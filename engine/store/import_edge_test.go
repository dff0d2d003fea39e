package store

import (
	"context"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

// entryOf makes an entry as another log would have it.
func entryOf(h record.Header, key, value string) []byte {
	b := make([]byte, record.Size(len(key), len(value), h.ExpireAt != 0))
	record.Encode(b, &h, []byte(key), []byte(value), true)
	return b
}

// importing opens a store with an import.
func importing(t *testing.T, now func() int64) (*Store, *Importer, *ImportWorker) {
	t.Helper()
	st, err := Open(Options{Now: now, SegmentBytes: 4 << 10, Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	im, err := st.NewImporter(ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(im.Abort)
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	return st, im, w
}

func (w *ImportWorker) mustImport(t *testing.T, entries ...[]byte) {
	t.Helper()
	for _, b := range entries {
		if err := w.Import(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
}

func lookup(t *testing.T, st *Store, key string) (View, Status) {
	t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte(key))
	return ss.Get(&k)
}

func TestARecordThatExpiresDuringAnImportUncoversNoOlderOne(t *testing.T) {
	clock := new(atomic.Int64)
	clock.Store(1000)
	st, im, w := importing(t, clock.Load)
	w.mustImport(t, entryOf(record.Header{Type: record.TypePut, Version: 5, ExpireAt: 2000}, "k", "newer"))
	clock.Store(3000)
	await.True(t, "the sweeper has come", func() bool { return st.ix.Len() == 0 })
	w.mustImport(t, entryOf(record.Header{Type: record.TypePut, Version: 4}, "k", "older"))
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, s := lookup(t, st, "k"); s != NotFound {
		t.Fatalf("%v %q", s, v.Value)
	}
}

func TestATombstoneComesBeforeOrAfterWhatItBuries(t *testing.T) {
	tomb := entryOf(record.Header{Type: record.TypeTombstone, Version: 5}, "k", "12345678")
	for version, want := range map[uint64]Status{4: NotFound, 6: OK} {
		put := entryOf(record.Header{Type: record.TypePut, Version: version}, "k", "v")
		for _, order := range [][][]byte{{tomb, put}, {put, tomb}, {put, tomb, put, tomb}} {
			st, im, w := importing(t, nil)
			w.mustImport(t, order...)
			if err := im.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, s := lookup(t, st, "k"); s != want {
				t.Fatalf("a record of version %d and a tombstone of version 5: %v", version, s)
			}
		}
	}
}

func TestAKeyThatWasDeletedElsewhereGoesOnAboveItsTombstone(t *testing.T) {
	st, im, w := importing(t, nil)
	w.mustImport(t, entryOf(record.Header{Type: record.TypeTombstone, Version: 700}, "k", "12345678"))
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	k := ss.Key(0, []byte("k"))
	if s := ss.Put(&k, Write{Value: []byte("v")}, nil); s != OK {
		t.Fatal(s, ss.Err())
	}
	ss.End()
	if v, _ := lookup(t, st, "k"); v.Version <= 700 {
		t.Fatalf("version %d follows a tombstone of version 700", v.Version)
	}
}

// largeEntries makes the pieces of a large value, and its record.
func largeEntries(of valueName, version uint64, key, value string, piece int) [][]byte {
	return largeEntriesIn(0, of, version, key, value, piece)
}

func largeEntriesIn(table record.TableID, of valueName, version uint64, key, value string, piece int) (all [][]byte) {
	k := []byte(key)
	place := record.PlaceOf(table, k)
	m := manifest{total: uint64(len(value)), of: of, piece: uint32(piece)}
	for n := range m.chunks() {
		var buf [chunkKeyBytes]byte
		ck := chunkKey(place, of, n, &buf)
		body := append([]byte{byte(len(k)), 0}, k...)
		body = binary.LittleEndian.AppendUint32(body, uint32(table))
		body = append(body, value[n*piece:min(len(value), (n+1)*piece)]...)
		all = append(all, entryOf(record.Header{Type: record.TypePut, Version: 1, Table: chunkTable}, string(ck.Bytes), string(body)))
	}
	var a arena
	return append(all, entryOf(record.Header{Type: record.TypePut, Version: version, Table: table, Chunked: true}, key, string(m.encode(&a))))
}

func TestPiecesOfLargeValuesThatNobodyNamesGo(t *testing.T) {
	st, im, w := importing(t, nil)
	old := largeEntries(valueName{7, 1}, 3, "k", "an old value in pieces", 5)
	newer := largeEntries(valueName{8, 1}, 4, "k", "a newer value, in pieces too", 5)
	deleted := largeEntries(valueName{8, 2}, 5, "gone", "deleted, but its pieces are there", 5)
	torn := largeEntries(valueName{8, 3}, 9, "k", "half of it never arrived", 5)
	w.mustImport(t, newer[len(newer)-1]) // A record before its pieces.
	w.mustImport(t, torn[2:]...)
	w.mustImport(t, old...)
	w.mustImport(t, deleted...)
	w.mustImport(t, entryOf(record.Header{Type: record.TypeTombstone, Version: 6}, "gone", "12345678"))
	w.mustImport(t, newer[:len(newer)-1]...)
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, s := lookup(t, st, "k"); s != OK || string(v.Value) != "a newer value, in pieces too" {
		t.Fatalf("%v %q", s, v.Value)
	}
	if n := st.ix.Len(); n != int64(len(newer)) {
		t.Fatalf("the index has %d entries, want a record and its %d pieces", n, len(newer)-1)
	}
}

func TestAnImportSkipsWhatIsNotItsOwn(t *testing.T) {
	st, err := Open(Options{SegmentBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	mine := record.PlaceOf(0, []byte("mine"))
	im, err := st.NewImporter(ImportOptions{Owns: func(p record.Place) bool { return p == mine }})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Abort()
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	w.mustImport(t, entryOf(record.Header{Type: record.TypePut, Version: 5}, "mine", "v"))
	w.mustImport(t, entryOf(record.Header{Type: record.TypePut, Version: 5}, "theirs", "v"))
	w.mustImport(t, largeEntries(valueName{8, 1}, 4, "theirs too", "a value, in pieces", 5)...)
	w.mustImport(t, entryOf(record.Header{Type: record.TypeCommit, Version: 5}, "mine", "v"))
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := st.ix.Len(); n != 1 {
		t.Fatalf("%d entries, want one", n)
	}
	if _, err := im.NewWorker(); err == nil {
		t.Fatal("an import that is over goes on")
	}
}

// Of databases beyond the 16 that importing has, nothing may be lost: neither records nor what buries older ones.
func TestWhatIsOfADatabaseThatThisNodeLacksIsRefusedAndNotPassedOver(t *testing.T) {
	for name, b := range map[string][]byte{
		"a record":    entryOf(record.Header{Type: record.TypePut, Version: 5, Table: 20}, "k", "v"),
		"a tombstone": entryOf(record.Header{Type: record.TypeTombstone, Version: 5, Table: 20}, "k", "12345678"),
		"a piece":     largeEntriesIn(20, valueName{8, 1}, 4, "k", "a value, in pieces", 5)[0],
	} {
		_, _, w := importing(t, nil)
		if err := w.Import(t.Context(), b); err == nil || !strings.Contains(err.Error(), "records of database 20") {
			t.Errorf("%s of database 20, at a node that has 16: %v", name, err)
		}
	}
}

func TestWhatIsOfADatabaseThatThisNodeLacksDoesNoHarmWhereItIsNotAskedFor(t *testing.T) {
	st, err := Open(Options{SegmentBytes: 4 << 10, Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	im, err := st.NewImporter(ImportOptions{Owns: func(p record.Place) bool { return p == record.PlaceOf(0, []byte("mine")) }})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Abort()
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	w.mustImport(t, entryOf(record.Header{Type: record.TypePut, Version: 5, Table: 20}, "theirs", "v"))
	w.mustImport(t, largeEntriesIn(20, valueName{8, 1}, 4, "theirs too", "a value, in pieces", 5)...)
}

// An entry may lie anywhere in a message: it is taken as if it lay in a segment.
func TestEntriesNeedNotBeAligned(t *testing.T) {
	st, im, w := importing(t, nil)
	b := entryOf(record.Header{Type: record.TypePut, Version: 5}, "k", "v")
	w.mustImport(t, append(make([]byte, 3, 3+len(b)), b...)[3:])
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, s := lookup(t, st, "k"); s != OK || string(v.Value) != "v" || v.Version != 5 {
		t.Fatalf("%v %q %d", s, v.Value, v.Version)
	}
}
