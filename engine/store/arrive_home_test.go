package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
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

func newSession(t *testing.T, st *Store) *Session {
	t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ss.Close)
	return ss
}

func newImport(t *testing.T, st *Store, o ImportOptions) (*Importer, *ImportWorker) {
	t.Helper()
	im, err := st.NewImporter(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Abort() })
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	return im, w
}

// indexed are all entries of the index.
func indexed(st *Store) (all []index.Probe) {
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = st.ix.Step(cursor, sweepBuckets, func(pr *index.Probe) bool {
			all = append(all, *pr)
			return true
		})
	}
	return all
}

// The source gives the versions that follow its own again, once the places were returned to it.
func TestAnHeirTakesWhatTheSourceWroteAfterAReturn(t *testing.T) {
	const ceiling = 1000
	st, a, live := arrivingAll(t, Options{}, ceiling)
	put := func(key string, version uint64, value string) []byte {
		return entryOf(record.Header{Type: record.TypePut, Version: version}, key, value)
	}
	live.mustImport(t, put("there", 5, "old"), put("spared", 5, "old"), put("removed", 5, "old"))
	ss := newSession(t, st)
	for _, name := range []string{"there", "absent"} {
		k := ss.Key(0, []byte(name))
		a.Settle(ArrivingKey{Place: k.Place, Table: k.Table, Bytes: []byte(name)})
	}
	ss.Begin()
	k := ss.Key(0, []byte("spared"))
	st.noteRemoval(&k, 5, ceiling+1) // There was no room for the tombstone, say.
	k = ss.Key(0, []byte("removed"))
	if s := ss.Delete(&k, nil); s != OK {
		t.Fatal(s)
	}
	ss.Seal()
	ss.End()
	a.Release(nil)

	im, w := newImport(t, st, ImportOptions{})
	w.mustImport(t, put("there", 6, "new"), put("spared", 6, "new"), put("absent", 1, "new"), put("removed", 5, "old"))
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.End()
	for _, name := range []string{"there", "spared", "absent"} {
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

// The log of a life in which the value was another node's has nothing of it that counts.
func TestAValueThatComesHomeIsNotMixedUpWithOneOfALaterLife(t *testing.T) {
	const home = 7
	value := strings.Repeat("a value in pieces, ", 20)
	st, a, live := arrivingAll(t, Options{LogID: home}, 1000)
	live.mustImport(t, largeEntries(valueName{home, 1}, 3, "{tag}", value, 50)...)
	if err := a.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.End()
	ss := newSession(t, st)
	other := strings.Repeat("of another key. ", 20)
	for range 3 {
		ss.Begin()
		k := ss.Key(0, []byte("other {tag}"))
		if s := ss.Put(&k, Write{Value: []byte(other)}, nil); s != OK {
			t.Fatal(s, ss.Err())
		}
		ss.Seal()
		ss.End()
	}
	for name, want := range map[string]string{"{tag}": value, "other {tag}": other} {
		if v, s := lookup(t, st, name); s != OK || string(v.Value) != want {
			t.Errorf("%q is %v, %.40q", name, s, v.Value)
		}
	}
}

// A place whose owner has died, and whose log is not replayed yet, may have an older version from before it was given back.
func TestNothingExpiresWhereTheNewestVersionIsStillToCome(t *testing.T) {
	var now, whole atomic.Int64
	now.Store(50)
	o := Options{Now: now.Load, Expires: func() func(record.Place) bool { return func(record.Place) bool { return whole.Load() != 0 } }}
	st, a, live := arrivingAll(t, o, 1000)
	live.mustImport(t, entryOf(record.Header{Type: record.TypePut, Version: 5, ExpireAt: 100}, "k", "old"))
	a.Release(nil)
	now.Store(200)
	ss := newSession(t, st)
	ss.Begin()
	all := indexed(st)
	ss.now = now.Load()
	for i := range all {
		ss.dropExpired(&all[i])
	}
	ss.Seal()
	ss.End()
	im, w := newImport(t, st, ImportOptions{})
	w.mustImport(t, entryOf(record.Header{Type: record.TypePut, Version: 6}, "k", "new"))
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.End()
	whole.Store(1)
	if v, s := lookup(t, st, "k"); s != OK || string(v.Value) != "new" {
		t.Errorf("the newest version is %v, %q", s, v.Value)
	}
}

// A cleaning that began before does not know that the places have left: it would move their tombstones behind the floor.
func TestPlacesHaveLeftOnlyWhenNoCleaningMovesWhatTheyHad(t *testing.T) {
	st, err := Open(Options{Device: device.NewMemory(), Durability: EverySec, SegmentBytes: 4 << 10, Heads: 1, Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	ss := newSession(t, st)
	var first *hlog.Segment
	for n := 0; first == nil || !st.log.AtRest(first); n++ {
		ss.Begin()
		k := ss.Key(0, fmt.Appendf(nil, "key:%d", n))
		if s := ss.Put(&k, Write{Value: []byte("v")}, nil); s != OK {
			t.Fatal(s, ss.Err())
		}
		if v, s := ss.Get(&k); s == OK && first == nil {
			first = st.log.Segment(v.at.Slot())
		}
		ss.Seal()
		ss.End()
	}
	left := make(chan error, 1)
	var begin sync.Once
	early := false
	err = st.cleanWith(func() {
		begin.Do(func() {
			go func() { left <- st.Retract(context.Background(), []Range{wholeRange}) }()
			await.True(t, "they leave, or wait for the cleaning", func() bool {
				early = len(left) > 0
				return early || stands("[sync.Mutex.Lock", "lockWithin")
			})
		})
	}, first)
	if err != nil {
		t.Fatal(err)
	}
	if early {
		t.Error("they left in the midst of a cleaning")
	}
	if err := <-left; err != nil {
		t.Fatal(err)
	}
}

// A tier that does not answer may hold a cleaning up for minutes, and a node that ends does not wait for that.
func TestAPlaceThatLeavesWaitsForNoCleaningOnceItIsCalledOff(t *testing.T) {
	st, a, _ := arrivingAll(t, Options{}, 1000)
	a.End()
	st.cleaning.Lock()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- st.Retract(ctx, []Range{wholeRange}) }()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	st.cleaning.Unlock()
	if err := st.Retract(t.Context(), []Range{wholeRange}); err != nil {
		t.Error(err)
	}
}

// What clients have replaced in places that still arrive is nobody's when a node starts again in the midst.
func TestPiecesOfReplacedValuesGoThoughTheirPlacesArrive(t *testing.T) {
	o := Options{Device: device.NewMemory(), Durability: EverySec, SegmentBytes: 4 << 10, Cluster: true, LogID: 7}
	st, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{strings.Repeat("a value in pieces, ", 500), "a small one"} {
		ss.Begin()
		k := ss.Key(0, []byte("k"))
		if s := ss.Put(&k, Write{Value: []byte(value)}, nil); s != OK {
			t.Fatal(s, ss.Err())
		}
		ss.Seal()
		ss.End()
	}
	ss.Close()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	o.Arriving = []Range{wholeRange}
	if st, err = Open(o); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if entries := len(indexed(st)); entries != 1 {
		t.Errorf("%d entries are there, want that of the small value", entries)
	}
}
