package store_test

import (
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

// A source sends a record whose time ends on the way, forgets it, and starts again with the version before, which never
// expires. The target has started again, too, and takes all that the source still has.
func TestWhatExpiresOnItsWayKeepsOlderVersionsAway(t *testing.T) {
	var now atomic.Int64
	now.Store(1000)
	options := store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, SegmentBytes: 64 << 10, Now: now.Load}
	source := open(t, options)
	ss := session(t, source)
	k := ss.Key(0, []byte("k"))
	put := func(w store.Write) (entry []byte) {
		attempt(ss, func() store.Status { return ss.Put(&k, w, nil) })
		ss.Begin()
		defer ss.End()
		ss.Pull(everyPlace, store.PullCursor{}, 1<<20, func(e []byte) { entry = append(entry, e...) })
		return entry
	}
	before := put(store.Write{Value: []byte("old")})
	sent := put(store.Write{Value: []byte("new"), ExpireAt: now.Load() + 1000})
	now.Add(2000)

	options.Device = device.NewMemory()
	arrive := func(st *store.Store, entries []byte) {
		a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: source.Ceiling(), Puller: noPuller{t}, Indirect: true})
		if err != nil {
			t.Fatal(err)
		}
		w, err := a.NewWorker()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Import(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if err := a.Flush(t.Context()); err != nil { // Now the source may forget it.
			t.Fatal(err)
		}
	}
	target, err := store.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	arrive(target, sent)
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	options.Arriving = []store.Range{everyPlace}
	target = open(t, options)
	arrive(target, before)
	if got := readKey(t, session(t, target), 0, []byte("k")); got != nil {
		t.Errorf("a key that has expired is %q again", got)
	}
}
