package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// written is an entry of a log, as the test knows it.
type written struct {
	key     string
	value   string // none: a tombstone
	version uint64
	batch   record.BatchID // 0 in a side segment
	segment record.SegmentID
}

// history writes to a store and remembers where everything is.
type history struct {
	t    *testing.T
	rng  *rand.Rand
	st   *Store
	main *Session
	all  []written
}

func (h *history) key() string { return fmt.Sprint("key:", h.rng.IntN(60)) }

// put writes a key through a session, in a batch of its own.
func (h *history) put(ss *Session, key string, side bool) {
	h.t.Helper()
	value := fmt.Sprintf("%s %d", key, len(h.all))
	if h.rng.IntN(10) == 0 {
		value += strings.Repeat("x", 70<<10) // In pieces.
	}
	ss.Begin()
	k := ss.Key(0, []byte(key))
	if s := ss.Put(&k, Write{Value: []byte(value)}, nil); s != OK {
		h.t.Fatal(s, ss.Err())
	}
	ticket := ss.Seal()
	ss.End()
	h.note(ss, key, value, ticket, side)
}

// note remembers the entry that a key has now.
func (h *history) note(ss *Session, key, value string, ticket Ticket, side bool) {
	h.t.Helper()
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte(key))
	v, s := ss.Get(&k)
	if s != OK {
		h.t.Fatal(s)
	}
	e := written{key: key, value: value, version: v.Version, batch: ticket.batch, segment: h.st.log.Segment(v.at.Slot()).ID}
	if side {
		e.batch = 0
	}
	h.all = append(h.all, e)
}

// remove deletes a key.
func (h *history) remove(key string) {
	h.t.Helper()
	ss := h.main
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte(key))
	v, s := ss.Get(&k)
	if s == NotFound {
		return
	}
	was := v.Version
	if s := ss.Delete(&k, nil); s != OK {
		h.t.Fatal(s)
	}
	h.all = append(h.all, written{key: key, version: was + 1, batch: ss.Seal().batch})
}

// want is what must be there when floors and owned places are in force.
func (h *history) want(floors []record.Floor, owned []record.Span) map[string]string {
	best := map[string]written{}
	for _, e := range h.all {
		place := record.PlaceOf(h.st.tables.of(0).id, []byte(e.key))
		counts := owned == nil || within1(owned, place)
		for _, f := range floors {
			below := e.batch < f.Batch
			if e.batch == 0 {
				below = e.segment < f.Segment
			}
			counts = counts && !(below && within1(f.Spans, place))
		}
		if old, ok := best[e.key]; counts && (!ok || e.version > old.version) {
			best[e.key] = e
		}
	}
	want := map[string]string{}
	for key, e := range best {
		if e.value != "" {
			want[key] = e.value
		}
	}
	return want
}

func within1(spans []record.Span, p record.Place) bool {
	return slices.ContainsFunc(spans, func(s record.Span) bool { return s.First <= p && p <= s.Last })
}

// randomSpans are up to three, of any places, or of whole slots.
func randomSpans(rng *rand.Rand) (spans []record.Span) {
	slots := rng.IntN(2) == 0
	for range 1 + rng.IntN(3) {
		a, b := record.Place(rng.Uint64()), record.Place(rng.Uint64())
		if slots {
			a, b = a&^slotRest, b&^slotRest
		}
		if a > b {
			a, b = b, a
		}
		if slots {
			b |= slotRest
		}
		spans = append(spans, record.Span{First: a, Last: b})
	}
	return spans
}

// check opens a clone of the log under floors and owned places, and compares.
func (h *history) check(what string, dev *device.Memory, o Options) {
	h.t.Helper()
	o.Device = dev.Crash()
	defer o.Device.(*device.Memory).Close()
	st, err := Open(o)
	if err != nil {
		h.t.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		h.t.Fatal(err)
	}
	defer ss.Close()
	want := h.want(o.Floors, o.Owned)
	if n, _ := st.Count(0); n != int64(len(want)) {
		h.t.Errorf("%s: %d keys are counted, want %d", what, n, len(want))
	}
	for n := range 60 {
		key := fmt.Sprint("key:", n)
		ss.Begin()
		k := ss.Key(0, []byte(key))
		v, s := ss.Get(&k)
		got := string(v.Value)
		ss.End()
		if (s == OK) != (want[key] != "") || got != want[key] {
			h.t.Errorf("%s: %s is %.40q (%v), want %.40q", what, key, got, s, want[key])
		}
	}
}

func TestAStartFindsExactlyWhatIsOwnedAndAboveTheFloors(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 8))
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		dev := device.NewMemory()
		o := Options{Device: dev, Durability: EverySec, SegmentBytes: 1 << 20, Heads: 2}
		st, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		h := &history{t: t, rng: rng, st: st}
		if h.main, err = st.NewSession(); err != nil {
			t.Fatal(err)
		}
		st.cleaning.Lock()    // The cleaner carries what is alive over any floor.
		var at []record.Floor // Where floors may be.
		saved := len(at)
		for n := range 150 {
			h.step()
			if n%10 == 0 {
				batch, segment := st.Position()
				at = append(at, record.Floor{Batch: batch, Segment: segment})
			}
			if n == 60 && round%2 == 0 {
				if err := st.Checkpoint(context.Background()); err != nil {
					t.Fatal(err)
				}
				saved = len(at)
			}
		}
		h.check("all of it", dev, o)
		for n := range 20 {
			o := o
			for range rng.IntN(3) {
				// A snapshot may have what is below a floor that came before it: then nothing of the
				// floor's places was there.
				f := at[saved+rng.IntN(len(at)-saved)]
				f.Spans = randomSpans(rng)
				o.Floors = append(o.Floors, f)
			}
			if rng.IntN(2) == 0 {
				o.Owned = randomSpans(rng)
			}
			h.check(fmt.Sprintf("round %d, %d: floors %+v, owned %+v", round, n, o.Floors, o.Owned), dev, o)
		}
		st.cleaning.Unlock()
		h.main.Close()
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		dev.Close()
	}
}

// step writes something, or brings a few records beside the log.
func (h *history) step() {
	h.t.Helper()
	switch h.rng.IntN(12) {
	case 0:
		ss, side, err := h.st.NewSideSession()
		if err != nil {
			h.t.Fatal(err)
		}
		for range 1 + h.rng.IntN(5) {
			h.put(ss, h.key(), true)
		}
		ss.Close()
		if err := side.Close(context.Background()); err != nil {
			h.t.Fatal(err)
		}
	case 1, 2:
		h.remove(h.key())
	default:
		h.put(h.main, h.key(), false)
	}
}
