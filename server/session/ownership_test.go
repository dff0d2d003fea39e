package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/wire"
)

var lowerHalf, upperHalf = view.Range{Last: 1<<63 - 1}, view.Range{First: 1 << 63, Last: view.Whole.Last}

// keyIn finds a key whose place is in a range.
func keyIn(r view.Range) []byte {
	for i := 0; ; i++ {
		key := fmt.Append(nil, "key", i)
		if p := record.PlaceOf(0, key); r.First <= p && p <= r.Last {
			return key
		}
	}
}

// exchange sends a frame and takes the next one.
func exchange(t *testing.T, addr string, frame []byte) (wire.Type, []byte) {
	t.Helper()
	conn := rawSession(t, addr)
	if err := greetRaw(conn); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	typ, body, err := readRaw(conn)
	if err != nil {
		t.Fatal(err)
	}
	return typ, body
}

// statuses of the results in a frame, by tag.
func statuses(t *testing.T, body []byte) map[uint32]wire.Status {
	t.Helper()
	rs, err := wire.DecodeResults(body)
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint32]wire.Status{}
	for rs.More() {
		var r wire.Result
		if err := rs.Next(&r); err != nil {
			t.Fatal(err)
		}
		all[r.Tag] = r.Status
	}
	return all
}

func TestByKeysABatchOfAnEarlierViewIsExecutedAsFarAsItsKeysAreOwned(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{Check: session.ByKeys}, "a", "b")
	w.move(view.RangesOf(view.Whole), "a")
	before := uint64(w.m.ViewID("a"))
	w.move(view.RangesOf(upperHalf), "b")
	frame := frameOf(before, wire.Op{Code: wire.OpPut, Key: keyIn(lowerHalf)}, wire.Op{Code: wire.OpPut, Key: keyIn(upperHalf)})
	typ, body := exchange(t, w.nodes["a"].addr, frame)
	if typ != wire.TypeResults {
		t.Fatalf("the batch got a %s frame", typ)
	}
	if got := statuses(t, body); got[0] != wire.OK || got[1] != wire.Moved {
		t.Fatalf("its operations got %v", got)
	}
}

func TestByKeysABatchFromBeforePlacesWentAndCameBackIsRejected(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{Check: session.ByKeys}, "a", "b")
	w.move(view.RangesOf(view.Whole), "a")
	before := uint64(w.m.ViewID("a"))
	w.move(view.RangesOf(upperHalf), "b")
	w.move(view.RangesOf(upperHalf), "a")
	for v, want := range map[uint64]wire.Type{
		0: wire.TypeStale, before: wire.TypeStale, before + 1: wire.TypeStale, before + 2: wire.TypeResults, before + 3: wire.TypeResults,
	} {
		frame := frameOf(v, wire.Op{Code: wire.OpPut, Key: keyIn(upperHalf)})
		if typ, _ := exchange(t, w.nodes["a"].addr, frame); typ != want {
			t.Errorf("view %d of %d got a %s frame, not %s", v, before+2, typ, want)
		}
	}
}

func TestGainedFollowsWhatANodeGets(t *testing.T) {
	whole, upper, lower := view.RangesOf(view.Whole), view.RangesOf(upperHalf), view.RangesOf(lowerHalf)
	at := &session.Routing{View: 3, Owned: upper}
	at.Follow(nil)
	for _, step := range []struct {
		view   view.ViewID
		owned  view.Ranges
		gained view.ViewID
	}{
		{3, upper, 3}, // the same again
		{4, whole, 4}, // more
		{5, lower, 4}, // less
		{6, nil, 4},   // nothing
		{7, upper, 7}, // some of what it had once
		{9, upper, 9}, // who knows what was between
		{10, lower, 10},
	} {
		next := &session.Routing{View: step.view, Owned: step.owned}
		if next.Follow(at); next.Gained != step.gained {
			t.Errorf("in view %d it has gained in view %d, not %d", step.view, next.Gained, step.gained)
		}
		at = next
	}
}

// TestAPageOfAScanIsOfPlacesThatAreOwned has a client ask for more than its view gives it.
func TestAPageOfAScanIsOfPlacesThatAreOwned(t *testing.T) {
	for _, check := range []session.Check{session.ByViews, session.ByKeys} {
		w := newWorld(t, store.Options{}, session.Options{Check: check}, "a", "b")
		scan := wire.Op{Code: wire.OpScan, Arg: wire.AppendScan(nil, &wire.Scan{Last: uint64(view.Whole.Last), Count: 1})}
		_, body := exchange(t, w.nodes["a"].addr, frameOf(uint64(w.m.ViewID("a")), scan))
		if got := statuses(t, body); got[0] != wire.Moved {
			t.Errorf("check %d: %v", check, got)
		}
	}
}

func TestByKeysClientsFindTheOwner(t *testing.T) {
	w := newWorld(t, store.Options{}, session.Options{Check: session.ByKeys}, "a", "b")
	c := dial(t, w.seeds(), client.Options{})
	key := keyIn(lowerHalf)
	run(t, c, []step{{op: client.Put(0, key, []byte("v"))}})
	w.move(view.RangesOf(lowerHalf), "b")
	run(t, c, []step{{op: client.Get(0, key), value: "v"}})
	if err := c.MultiPut(t.Context(), 0, client.Entry{Key: key}, client.Entry{Key: keyIn(upperHalf)}); err != nil {
		t.Fatal(err)
	}
	w.move(view.RangesOf(view.Whole), "a")
	values, err := c.MultiGet(t.Context(), 0, [][]byte{key, keyIn(upperHalf)})
	if err := errors.Join(err, values[0].Err, values[1].Err); err != nil {
		t.Fatal(err)
	}
	if m := w.nodes["a"].srv.Metrics(); m.Moved == 0 {
		t.Fatalf("nothing was sent elsewhere: %+v", m)
	}
}
