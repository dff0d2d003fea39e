package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// resolve asks the source for all that it has at some places, and imports it.
func (m *move) resolve(w *store.ImportWorker, ss *store.Session, places []record.Place) error {
	for at := (store.PullCursor{}); len(places) > 0; {
		ask := places[:min(len(places), store.MaxPullKeys)]
		b, unsent := m.pullKeys(ss, at, func(c store.PullCursor, emit func([]byte)) (store.Unsent, store.Status) {
			return ss.PullKnown(ask, c, 300, emit)
		})
		if err := w.Import(m.t.Context(), b); err != nil {
			return err
		}
		given, left := parted(ask, unsent)
		if _, err := w.Resolved(given); err != nil {
			return err
		}
		places, at = append(left, places[len(ask):]...), unsent.Next
	}
	return nil
}

// settle brings all that is known only, by segments and then by places.
func (m *move) settle() {
	m.t.Helper()
	if !m.indirect {
		return
	}
	w, err := m.a.NewWorker()
	if err != nil {
		m.t.Error(err)
		return
	}
	defer w.Close()
	ss, err := m.e.st.NewSession()
	if err != nil {
		m.t.Error(err)
		return
	}
	defer ss.Close()
	if m.tiered {
		for _, id := range m.a.ColdSegments() {
			if b := m.copyOf(id); b != nil {
				if _, _, err := w.ResolveSegment(m.t.Context(), id, b); err != nil {
					m.t.Error(err)
				}
			}
		}
	}
	if m.seed%2 == 0 {
		for _, id := range m.a.ColdSegments() {
			m.settleSegment(w, ss, id)
		}
	}
	for m.a.Indirections() > 0 && !m.t.Failed() {
		places, _, err := w.Unresolved(0, 10)
		if err == nil {
			err = m.resolve(w, ss, places)
		}
		if err != nil {
			m.t.Error(err)
		}
	}
}

// settleSegment brings what one segment of the source has.
func (m *move) settleSegment(w *store.ImportWorker, ss *store.Session, id record.SegmentID) {
	for cursor, more := (store.PullCursor{}), true; more; more = cursor != (store.PullCursor{}) {
		read, err := m.e.st.ReadSegment(id)
		if errors.Is(err, store.ErrSegmentGone) {
			return
		}
		if err != nil {
			m.t.Error(err)
			return
		}
		var b []byte
		var answered []store.Indirection
		b, cursor = m.pull(ss, cursor, func(c store.PullCursor, emit func([]byte)) (store.PullCursor, store.Status) {
			next, st := ss.PullSegment(read, m.ranges, c, 400, emit, func(i store.Indirection) { answered = append(answered, i) })
			if st >= store.Refused && errors.Is(ss.Err(), store.ErrSegmentGone) {
				return store.PullCursor{}, store.OK
			}
			return next, st
		})
		if err := w.Import(m.t.Context(), b); err != nil {
			m.t.Error(err)
		}
		if _, err := w.ResolvedAt(answered); err != nil {
			m.t.Error(err)
		}
	}
}

// coldSource is a store that has n keys, most of them on disk.
func coldSource(t *testing.T, n int) (*store.Store, *store.Session) {
	t.Helper()
	st := open(t, store.Options{
		Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, SegmentBytes: 16 << 10, MemoryBytes: 256 << 10, Heads: 1,
	})
	ss := session(t, st)
	for i := range n {
		k := key(ss, i)
		if s := attempt(ss, func() store.Status { return ss.Put(&k, store.Write{Value: fmt.Appendf(nil, "%0200d", i)}, nil) }); s != store.OK {
			t.Fatal(s, ss.Err())
		}
	}
	return st, ss
}

func TestAPullOfASegmentThatBeginsAnywhereGivesNothingWrongAndEnds(t *testing.T) {
	st, ss := coldSource(t, 8000)
	ids, _ := st.OldSegments()
	read, err := st.ReadSegment(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	refused := 0
	pull := func(at store.PullCursor, take func(entry []byte)) {
		ss.Begin()
		defer ss.End()
		if _, s := ss.PullSegment(read, []store.Range{everyPlace}, at, 1<<30, take, nil); s != store.OK {
			if !errors.Is(ss.Err(), store.ErrNoEntry) {
				t.Fatalf("from %d on: %s, %v", at.At, s, ss.Err())
			}
			refused++
		}
	}
	pull(store.PullCursor{}, func(entry []byte) { all[string(entry)] = true })
	if len(all) == 0 || refused > 0 {
		t.Fatalf("%d records are given, and %d times none", len(all), refused)
	}
	for at := range uint64(4096) {
		pull(store.PullCursor{At: at}, func(entry []byte) {
			if !all[string(entry)] {
				t.Fatalf("from %d on something is given that is no record", at)
			}
		})
	}
	for _, at := range []uint64{record.MaxSegmentBytes - 8, 1 << 40, 1<<64 - 8} {
		pull(store.PullCursor{At: at}, func([]byte) { t.Errorf("something is given from %d on", at) })
	}
	if least := 4096 / 8 * 7; refused < least {
		t.Errorf("%d cursors were refused, want %d at least", refused, least)
	}
}

func TestASegmentGivesWhatIsAliveInItAndNothingElse(t *testing.T) {
	const n = 8000
	st, ss := coldSource(t, n)
	for i := 0; i < n; i += 3 { // A third of it is dead in old segments.
		k := key(ss, i)
		if s := attempt(ss, func() store.Status { return ss.Delete(&k, nil) }); s != store.OK {
			t.Fatal(s, ss.Err())
		}
	}
	half := []store.Range{{First: 0, Last: 1<<63 - 1}}
	ids, since := st.OldSegments()
	got := map[string]int{}
	take := func(entry []byte) { got[string(record.PtrOf(entry).Key())]++ }
	for _, id := range ids {
		for at, more := (store.PullCursor{}), true; more; more = at != (store.PullCursor{}) {
			read, err := st.ReadSegment(id)
			if errors.Is(err, store.ErrSegmentGone) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			ss.Begin()
			next, s := ss.PullSegment(read, half, at, 1000, take, nil)
			ss.End()
			if s == store.OK {
				at = next
			} else if !errors.Is(ss.Err(), store.ErrSegmentGone) {
				t.Fatal(s, ss.Err())
			}
		}
	}
	for at, more := (store.PullCursor{}), true; more; more = at != (store.PullCursor{}) {
		ss.Begin()
		next, s := ss.PullWith(half[0], at, store.PullOptions{MaxBytes: 1000, Emit: take, Since: since})
		ss.End()
		if s == store.Cold {
			if err := ss.Fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
			s = store.OK
		}
		if s != store.OK {
			t.Fatal(s, ss.Err())
		}
		at = next
	}
	for i := range n {
		k := key(ss, i)
		want := i%3 != 0 && k.Place <= half[0].Last
		if (got[string(k.Bytes)] > 0) != want {
			t.Fatalf("key %d was given %d times, wanted: %v", i, got[string(k.Bytes)], want)
		}
	}
}

// asking counts what is asked for, and answers from the source.
type asking struct {
	t      *testing.T
	source *store.Session
	w      *store.ImportWorker
	keys   int
}

func (p *asking) Want(keys []store.ArrivingKey, done func(error)) {
	p.keys += len(keys)
	cold, rest := divide(p.w, keys)
	if len(rest) > 0 {
		p.t.Errorf("%s was asked for, of which there is no word", rest[0].Bytes)
	}
	var entries []byte
	left, u, s := cold, store.Unsent{}, store.OK
	for len(left) > 0 {
		ask := left[:min(len(left), store.MaxPullKeys)]
		p.source.Begin()
		u, s = p.source.PullKnown(ask, u.Next, 1<<20, func(e []byte) { entries = append(entries, e...) })
		p.source.End()
		if s == store.OK {
			_, again := parted(ask, u)
			left = append(again, left[len(ask):]...)
		} else if err := p.source.Fetch(p.t.Context()); err != nil {
			p.t.Error(err)
		}
	}
	if err := p.w.Import(p.t.Context(), entries); err != nil {
		p.t.Error(err)
	}
	_, err := p.w.Resolved(cold)
	done(err)
}

// arriveCold has all of a source arrive at a new store, what is cold by word of it.
func arriveCold(t *testing.T, source *store.Store, ss *store.Session) (*store.Session, *store.Arrival, *asking) {
	t.Helper()
	st := open(t, store.Options{Device: device.NewMemory(), Durability: store.EverySec, Cluster: true, SegmentBytes: 1 << 20})
	ask := &asking{t: t, source: ss}
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: source.Ceiling(), Puller: ask, Indirect: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.End)
	if ask.w, err = a.NewWorker(); err != nil {
		t.Fatal(err)
	}
	for at, more := (store.PullCursor{}), true; more; more = at != (store.PullCursor{}) {
		var entries []byte
		var refs []store.Indirection
		var s store.Status
		ss.Begin()
		at, s = ss.PullWith(everyPlace, at, store.PullOptions{
			MaxBytes: 20 << 10,
			Emit:     func(e []byte) { entries = append(entries, e...) },
			Refer:    func(i store.Indirection) { refs = append(refs, i) },
		})
		ss.End()
		if s != store.OK {
			t.Fatalf("a pull that only tells of what is cold is %v: %v", s, ss.Err())
		}
		if err := errors.Join(ask.w.Refer(refs), ask.w.Import(t.Context(), entries)); err != nil {
			t.Fatal(err)
		}
	}
	a.Pulled(everyPlace)
	await.True(t, "all was pulled", a.AllPulled)
	return session(t, st), a, ask
}

func TestOnlyKeysWithAnIndirectionAreAskedFor(t *testing.T) {
	const n = 8000
	source, from := coldSource(t, n)
	ss, a, ask := arriveCold(t, source, from)
	all := a.Indirections()
	if all < n/2 {
		t.Fatalf("the source has little that is cold: %d of %d records", all, n)
	}
	for i := n; i < 2*n; i++ {
		k := key(ss, i)
		if s := attempt(ss, func() store.Status { _, s := ss.Get(&k); return s }); s != store.NotFound {
			t.Fatalf("a key that nobody wrote: %v", s)
		}
	}
	if ask.keys != 0 {
		t.Fatalf("%d keys were asked for that do not exist", ask.keys)
	}
	removed := 0
	for i := range n {
		k := key(ss, i)
		var s store.Status
		switch i % 4 {
		case 0:
			s = attempt(ss, func() store.Status { return ss.Put(&k, store.Write{Value: []byte("new")}, nil) })
		case 1:
			s = attempt(ss, func() store.Status { return ss.Delete(&k, nil) })
			removed++
		default:
			s = attempt(ss, func() store.Status { _, s := ss.Get(&k); return s })
		}
		if s != store.OK {
			t.Fatalf("key %d: %v %v", i, s, ss.Err())
		}
	}
	if ask.keys == 0 || ask.keys > n*3/4 {
		t.Fatalf("%d keys were asked for: blind writes need none, and %d others were cold", ask.keys, all)
	}
	for left := a.Indirections(); left > 0; left = a.Indirections() {
		places, _, err := ask.w.Unresolved(0, 100)
		if err != nil || len(places) == 0 {
			t.Fatal(len(places), err)
		}
		var keys []store.ArrivingKey
		for _, p := range places {
			keys = append(keys, store.ArrivingKey{Place: p})
		}
		ask.Want(keys, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	for i := range n {
		k := key(ss, i)
		var value string
		s := attempt(ss, func() store.Status {
			v, s := ss.Get(&k)
			value = string(v.Value)
			return s
		})
		switch {
		case i%4 == 1 && s != store.NotFound:
			t.Fatalf("key %d was removed, and is %v", i, s)
		case i%4 == 0 && value != "new":
			t.Fatalf("key %d was written, and is %q", i, value)
		case i%4 > 1 && value != fmt.Sprintf("%0200d", i):
			t.Fatalf("key %d is %q (%v)", i, value, s)
		}
	}
}

func TestAnAbsentKeyThatCollidesWithAnIndirectionIsFoundAbsentAndHidesNothing(t *testing.T) {
	source, from := coldSource(t, 4000)
	ss, a, ask := arriveCold(t, source, from)
	places, _, err := ask.w.Unresolved(0, 1)
	if err != nil || len(places) == 0 {
		t.Fatal(places, err)
	}
	before := a.Indirections()
	stranger := ss.Key(0, []byte("of the same known bits"))
	stranger.Place = places[0] | 5<<20 // As far as an index knows, it is the same.
	if index.Known(stranger.Place) != places[0] {
		t.Fatal("the place has other known bits")
	}
	if s := attempt(ss, func() store.Status { _, s := ss.Get(&stranger); return s }); s != store.NotFound || ask.keys != 1 {
		t.Fatalf("%v, after %d questions", s, ask.keys)
	}
	if left := a.Indirections(); left >= before {
		t.Fatalf("%d indirections, and %d before", left, before)
	}
	again, _, err := ask.w.Unresolved(0, 1)
	if err != nil || again[0] == places[0] {
		t.Fatal("what was asked for is still only known of", err)
	}
	found := 0
	for i := range 4000 {
		k := key(ss, i)
		if s := attempt(ss, func() store.Status { _, s := ss.Get(&k); return s }); s == store.OK {
			found++
		}
	}
	if found != 4000 {
		t.Fatalf("%d keys of 4000", found)
	}
}
