package store

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// arrivingAll is a store to which all places arrive, and who imports there.
func arrivingAll(t *testing.T, o Options, ceiling uint64) (*Store, *Arrival, *ImportWorker) {
	t.Helper()
	o.Device, o.Durability, o.SegmentBytes, o.Cluster = device.NewMemory(), EverySec, 4<<10, true
	st, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	a, err := st.Arrive(ArriveOptions{Ranges: []Range{wholeRange}, Ceiling: ceiling, Puller: nobody{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.End)
	w, err := a.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	return st, a, w
}

// The source gives the versions that follow its own again, once the places were returned to it.
func TestAnHeirTakesWhatTheSourceWroteAfterAReturn(t *testing.T) {
	const ceiling = 1000
	st, a, live := arrivingAll(t, Options{}, ceiling)
	put := func(key string, version uint64, value string) []byte {
		return entryOf(record.Header{Type: record.TypePut, Version: version}, key, value)
	}
	live.mustImport(t, put("there", 5, "old"), put("removed", 5, "old"))
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	for _, name := range []string{"there", "absent"} {
		k := ss.Key(0, []byte(name))
		a.Settle(ArrivingKey{Place: k.Place, Table: k.Table, Bytes: []byte(name)})
	}
	ss.Begin()
	k := ss.Key(0, []byte("removed"))
	if s := ss.Delete(&k, nil); s != OK {
		t.Fatal(s)
	}
	ss.Seal()
	ss.End()
	a.Release(nil)

	im, err := st.NewImporter(ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Abort()
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	w.mustImport(t, put("there", 6, "new"), put("absent", 1, "new"), put("removed", 5, "old"))
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.End()
	for _, name := range []string{"there", "absent"} {
		if v, s := lookup(t, st, name); s != OK || string(v.Value) != "new" {
			t.Errorf("key %q, which the source wrote and then died: %v %q", name, s, v.Value)
		}
	}
	if v, s := lookup(t, st, "removed"); s != NotFound {
		t.Errorf("a key that was removed here is %v again, %q", s, v.Value)
	}
}

// A value goes to another node in pieces, and comes back to the one that made it.
func TestPiecesOfAValueThatComesHomeStayUntilItsRecordComes(t *testing.T) {
	const home = 7
	value := strings.Repeat("a value in pieces, ", 20)
	st, a, live := arrivingAll(t, Options{LogID: home}, 1000)
	entries := largeEntries(valueName{home, 1}, 3, "k", value, 50)
	pieces, front := entries[:len(entries)-1], entries[len(entries)-1]
	live.mustImport(t, pieces...)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	cleaned := 0
	for _, s := range st.log.Segments() {
		if st.log.AtRest(s) && !s.Vacated() && s.End() > 0 {
			if err := st.clean(s); err != nil {
				t.Fatal(err)
			}
			cleaned++
		}
	}
	if cleaned == 0 {
		t.Fatal("no segment is at rest: the test shows nothing")
	}
	live.mustImport(t, front)
	if err := a.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, s := lookup(t, st, "k"); s != OK || string(v.Value) != value {
		t.Errorf("the value that came home is %v, of %d bytes", s, len(v.Value))
	}
}
