package server_test

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// bring has each node bring its keys from a number to another beside its log, and returns when all
// of it is part of the logs.
func (w *world) bring(from, to int) {
	w.t.Helper()
	s := w.cache.Snapshot()
	for name, n := range w.nodes {
		ss, side, err := n.Engine().NewSideSession()
		w.must(err)
		for i := from; i < to; i++ {
			if owner, _ := s.Map.Owner(placeOf(key(i))); owner == view.NodeID(name) {
				w.put(ss, key(i), fmt.Sprint("value ", i))
			}
		}
		ss.Close()
		w.must(side.Close(patient(w.t)))
	}
}

func placeOf(key string) record.Place { return record.PlaceOf(0, []byte(key)) }

func (w *world) put(ss *store.Session, key, value string) {
	w.t.Helper()
	for {
		ss.Begin()
		k := ss.Key(0, []byte(key))
		st := ss.Put(&k, store.Write{Value: []byte(value)}, nil)
		ss.Seal()
		ss.End()
		switch st {
		case store.OK:
			return
		case store.Cold:
			w.must(ss.Fetch(patient(w.t)))
		default:
			w.t.Fatal(st, ss.Err())
		}
	}
}

func TestWhatWasBroughtBesideALogSurvivesItsMachineAndItsNode(t *testing.T) {
	w := newWorld(t)
	names := []string{"n1", "n2", "n3", "n4"}
	w.start(names...)
	w.await("copies", copied)
	w.write(w.client(names...), 0, 500)
	w.bring(500, 2500)
	w.write(w.client(names...), 2500, 3000)
	w.drop(names...) // All at once, so that nobody takes over.
	for _, name := range names {
		w.loseTail(name)
	}
	w.start(names...)
	w.check(w.client(names...), 0, 3000)
	w.await("copies", copied)
	w.drop("n2")
	w.await("heirs", func(s *meta.Snapshot) bool { return settled(s) && len(s.Map.Ranges("n2")) == 0 })
	w.check(w.client("n1", "n3", "n4"), 0, 3000)
}
