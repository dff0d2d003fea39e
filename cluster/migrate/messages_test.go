package migrate

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	cursor := store.PullCursor{At: 1, Log: 2, Value: 3, Piece: 4}
	p := pull{ID: 7, Range: view.Range{First: 10, Last: 1 << 63}, Cursor: cursor, Bytes: 20 << 10, Since: 12, Life: 1<<63 + 5, Indirect: true}
	var p2 pull
	check(t, p2.decode(p.encode(nil)))
	if p2 != p {
		t.Errorf("%+v", p2)
	}
	sp := segmentPull{ID: 7, Segment: 5, Cursor: store.PullCursor{At: 8}, Bytes: 1, Answered: true}
	var sp2 segmentPull
	check(t, sp2.decode(sp.encode(nil)))
	if sp2 != sp {
		t.Errorf("%+v", sp2)
	}
	a := pulled{Cursor: cursor, Records: 9, Cold: 2}
	var a2 pulled
	check(t, a2.decode(a.encode()))
	if a2 != a || a2.all() {
		t.Errorf("%+v", a2)
	}
	into := pullInto{pull: p, Landing: 1<<63 + 1, Slot: 31, Pulls: 3}
	var into2 pullInto
	check(t, into2.decode(into.encode(nil)))
	if into2 != into {
		t.Errorf("%+v", into2)
	}
	l := landed{pulled: a, Bytes: 20_000}
	l2, err := landedOf(l.append(nil), 1, nil)
	check(t, err)
	if l2[0] != l {
		t.Errorf("%+v", l2)
	}
	k := keys{ID: 7, Cursor: store.PullCursor{Log: 2, Value: 3, Piece: 4}}
	var k2 keys
	check(t, k2.decode(k.encode()))
	if k2 != k {
		t.Errorf("%+v", k2)
	}
	g := gave{Unsent: store.Unsent{Keys: 1 | 1<<63, Next: k.Cursor}, Records: 12}
	var g2 gave
	check(t, g2.decode(g.encode(), store.MaxPullKeys, store.PullCursor{}))
	if g2 != g || !g2.Has(63) || g2.Has(62) {
		t.Errorf("%+v", g2)
	}
	var b []byte
	var list []store.ArrivingKey
	for i := range 5 {
		one := store.ArrivingKey{Table: record.TableID(i), Bytes: bytes.Repeat([]byte{'k'}, i*10)}
		one.Place = record.PlaceOf(one.Table, one.Bytes)
		list = append(list, one)
		b = appendKey(b, &one)
	}
	got, err := decodeKeys(b)
	check(t, err)
	if !reflect.DeepEqual(got, list) {
		t.Errorf("%+v", got)
	}
}

func TestAnAnswerIsPartedIntoEntriesAndIndirections(t *testing.T) {
	list := []store.Indirection{{Known: 1<<63 | 5, Segment: 9, Offset: 800}, {Known: 3}}
	bulk := []byte("entries")
	for _, i := range list {
		bulk = appendIndirection(bulk, i)
	}
	entries, cold, err := (&pulled{Cold: 2}).split(bulk)
	check(t, err)
	if string(entries) != "entries" || !reflect.DeepEqual(cold, list) {
		t.Errorf("%q %+v", entries, cold)
	}
	if _, _, err := (&pulled{Cold: 3}).split(bulk); err == nil {
		t.Error("more indirections than there are bytes")
	}
	places := []record.Place{7, 1 << 60}
	got, err := decodePlaces(appendPlaces(nil, places))
	check(t, err)
	if !reflect.DeepEqual(got, places) {
		t.Errorf("%v", got)
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	whole := (&pull{ID: 7, Range: view.Whole, Bytes: 1}).encode(nil)
	for n := range len(whole) {
		if (&pull{}).decode(whole[:n]) == nil || (&pulled{}).decode(whole[:n]) == nil && n != pulledBytes {
			t.Fatalf("%d bytes were taken for a message", n)
		}
	}
	if (&pull{}).decode((&pull{Range: view.Range{First: 2, Last: 1}}).encode(nil)) == nil {
		t.Error("a range that ends before it begins")
	}
	if (&pull{}).decode((&pull{Range: view.Whole, Bytes: 1 << 31}).encode(nil)) == nil {
		t.Error("more than an answer can carry")
	}
	begun := store.PullCursor{Value: 1, Piece: 3}
	for what, g := range map[string]gave{
		"more keys than were asked for":       {Unsent: store.Unsent{Keys: 1 << 5}},
		"a first key that goes on nowhere":    {Unsent: store.Unsent{Keys: 1}},
		"a first key that came and goes on":   {Unsent: store.Unsent{Next: store.PullCursor{Value: 1, Piece: 4}}},
		"a first key that got no further":     {Unsent: store.Unsent{Keys: 1, Next: begun}},
		"a first key that goes on at another": {Unsent: store.Unsent{Keys: 1, Next: store.PullCursor{At: 1}}},
	} {
		if (&gave{}).decode(g.encode(), 5, begun) == nil {
			t.Error(what)
		}
	}
	if (&gave{}).decode((&gave{}).encode()[1:], 5, begun) == nil {
		t.Error("an answer that lacks a byte")
	}
	if (&keys{}).decode((&keys{Cursor: store.PullCursor{Piece: 1 << 63}}).encode()) == nil {
		t.Error("a piece that no value has")
	}
	for range 1000 {
		b := make([]byte, random.IntN(64))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		list, err := decodeKeys(b)
		used := 0
		for _, k := range list {
			used += 8 + len(k.Bytes)
		}
		if err == nil && used != len(b) {
			t.Fatalf("%d of %d bytes were keys", used, len(b))
		}
	}
}

func TestClientsWaitedNoLongerThanTheSourceSaysAndTheWayTook(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		why               string
		said              yielded
		since, wantClosed time.Duration
	}{
		{"the way there and back is counted", yielded{Closed: 2 * ms, Took: 10 * ms}, 13 * ms, 5 * ms},
		{"a clock that stood still takes nothing away", yielded{Closed: 2 * ms, Took: 10 * ms}, 9 * ms, 2 * ms},
		{"the source yielded before", yielded{Took: 10 * ms}, 13 * ms, 0},
		{"an earlier version says nothing of the way", yielded{Closed: 2 * ms}, 13 * ms, 2 * ms},
	} {
		if got := c.said.closedFor(c.since); got != c.wantClosed {
			t.Errorf("%s: %v, want %v", c.why, got, c.wantClosed)
		}
	}
}
