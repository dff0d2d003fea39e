package redis_test

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// move gives ranges of one node to another, records and all, as a recovery does: the map
// changes first, commands wait at the new owner until the records are there.
func (tw *town) move(ranges view.Ranges, from, to int) {
	tw.t.Helper()
	tw.publish(func() {
		m, err := tw.m.Apply(view.Move{Ranges: ranges, From: tw.nodes[from].id, To: tw.nodes[to].id})
		if err != nil {
			tw.t.Fatal(err)
		}
		tw.m = m
		tw.nodes[to].state.Recovering = ranges
	})
	tw.nodes[from].srv.PassAll()
	tw.copyRecords(ranges, tw.nodes[from].st, tw.nodes[to].st)
	tw.publish(func() { tw.nodes[to].state.Recovering = nil })
}

// copyRecords makes one store hold of the ranges what the other holds.
func (tw *town) copyRecords(ranges view.Ranges, from, to *store.Store) {
	tw.t.Helper()
	in, err := from.NewSession()
	if err != nil {
		tw.t.Fatal(err)
	}
	defer in.Close()
	out, err := to.NewSession()
	if err != nil {
		tw.t.Fatal(err)
	}
	defer out.Close()
	in.Begin()
	defer in.End()
	out.Begin()
	defer out.End()
	for _, db := range append(from.Private(), 0) {
		tw.copyDatabase(db, ranges, in, out)
	}
	out.Seal()
}

func (tw *town) copyDatabase(db int, ranges view.Ranges, in, out *store.Session) {
	tw.t.Helper()
	tw.eachKey(out, db, ranges, func(key []byte) {
		k := out.Key(db, key)
		out.Delete(&k, nil)
	})
	tw.eachKey(in, db, ranges, func(key []byte) {
		k := in.Key(db, key)
		v, st := in.Get(&k)
		if st != store.OK {
			return // It has expired.
		}
		k = out.Key(db, key)
		if st := out.Put(&k, store.Write{Value: v.Value, ExpireAt: v.ExpireAt, Kind: v.Kind}, nil); st != store.OK {
			tw.t.Errorf("copying %q: %v", key, st)
		}
	})
}

func (tw *town) eachKey(ss *store.Session, db int, ranges view.Ranges, f func(key []byte)) {
	tw.t.Helper()
	var keys [][]byte
	for cursor := uint64(0); ; {
		next, st := ss.Scan(db, cursor, 1000, func(key []byte, _ *store.View) {
			if ranges.Contains(record.PlaceOf(0, key)) {
				keys = append(keys, append([]byte(nil), key...))
			}
		})
		if st != store.OK {
			tw.t.Fatal(st)
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	for _, key := range keys {
		f(key)
	}
}
