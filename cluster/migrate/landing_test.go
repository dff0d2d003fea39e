package migrate

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// landedSource is a source with a landing of its target, which is called without a connection.
type landedSource struct {
	*Source
	t    *testing.T
	land *landing
}

// untouched fails if a slot was written to.
func (s landedSource) untouched(n uint32) {
	s.t.Helper()
	slot, err := s.land.landed(n, uint32(s.land.room))
	check(s.t, err)
	if all := slices.Concat(slot.entries, slot.known); !bytes.Equal(all, make([]byte, len(all))) {
		s.t.Errorf("slot %d was written to", n)
	}
}

func newLandedSource(t *testing.T, records, slotBytes int) landedSource {
	m := meta.Migration{ID: 1, Source: "source", Target: "target", Ranges: view.RangesOf(view.Whole), Stage: meta.Moving}
	shelf := NewShelf(filled(t, records))
	t.Cleanup(shelf.Close)
	s := landedSource{NewSource(given{m: m, shelf: shelf}), t, newTestLanding(t, slotBytes)}
	s.landAs(false)
	t.Cleanup(func() { s.grounds.drop(func(*ground) bool { return true }) })
	return s
}

func newTestLanding(t *testing.T, slotBytes int) *landing {
	t.Helper()
	l, err := newLanding(2, slotBytes)
	check(t, err)
	t.Cleanup(func() { check(t, l.memory.Close()) })
	return l
}

func (s landedSource) landAs(over bool) {
	s.t.Helper()
	s.landFrom("target", over)
}

func (s landedSource) landFrom(target view.NodeID, over bool) {
	s.t.Helper()
	head, err := json.Marshal(s.land.ask(1, over))
	check(s.t, err)
	_, _, err = s.Source.land(s.t.Context(), peer.NewCall(target, head, nil, nil))
	check(s.t, err)
}

// pull pulls everything into a slot: what landed there, and what went over the wire.
func (s landedSource) pull(slot uint32) (got landed, here, wire []byte) {
	s.t.Helper()
	all, wire := s.pulls(slot, 1, 1<<20)
	return all[0], s.here(slot, all[0]), wire
}

// pulls asks for some pulls of so many bytes each: what is said of them, and what went over the wire.
func (s landedSource) pulls(slot, most, bytes uint32) (got []landed, wire []byte) {
	s.t.Helper()
	ask := pullInto{pull: pull{ID: 1, Range: view.Whole, Bytes: bytes}, Landing: markOf(s.land.share), Slot: slot, Pulls: most}
	c := peer.NewCall("target", ask.encode(nil), nil, nil)
	head, _, err := s.pullInto(s.t.Context(), c)
	check(s.t, err)
	got, err = landedOf(head.(peer.Raw), int(most), nil)
	check(s.t, err)
	pieces, sent := c.Gathered()
	wire = slices.Concat(pieces...)
	if sent != nil {
		sent()
	}
	return got, wire
}

// here is what landed in a slot.
func (s landedSource) here(n uint32, got landed) []byte {
	s.t.Helper()
	there, err := s.land.landed(n, got.Bytes)
	check(s.t, err)
	s.places(there)
	return there.entries
}

// places checks what a slot says of the places of its entries.
func (s landedSource) places(there slot) {
	s.t.Helper()
	for n, rest := 0, there.entries; len(rest) > 0; n++ {
		p := record.PtrOf(rest)
		got, want := binary.LittleEndian.Uint64(there.known[n*slotPlace:]), index.Known(record.PlaceOf(p.Table(), p.Key()))
		if record.Place(got) != want {
			s.t.Fatalf("entry %d of a slot is at %x, and %x is said of it", n, want, got)
		}
		rest = rest[p.Length():]
	}
}

// entriesIn counts what lies one behind the other.
func entriesIn(b []byte) (n int) {
	for ; len(b) > 0; n++ {
		b = b[record.PtrOf(b).Length():]
	}
	return n
}

func TestWhatDoesNotFitASlotComesBehindWhatDid(t *testing.T) {
	const n = 100
	s := newLandedSource(t, n, 1000)
	got, here, wire := s.pull(1)
	if len(here) == 0 || len(wire) == 0 || len(here) > int(s.land.room) {
		t.Fatalf("%d bytes landed in a slot of %d, %d came over the wire", len(here), s.land.room, len(wire))
	}
	if all := entriesIn(here) + entriesIn(wire); all != n || got.Records != n {
		t.Errorf("%d entries came, %d were told, there are %d", all, got.Records, n)
	}
	s.untouched(0)
}

func TestPullsOfOneQuestionLandInSlotsInARow(t *testing.T) {
	const n, bytes = 1000, 1 << 10
	s := newLandedSource(t, n, bytes)
	got, wire := s.pulls(1, 3, bytes)
	if len(got) != 3 || len(wire) != 0 {
		t.Fatalf("%d pulls were done, and %d bytes came over the wire", len(got), len(wire))
	}
	for i, one := range got {
		if in := entriesIn(s.here(uint32(1+i), one)); in == 0 || uint32(in) != one.Records || one.all() {
			t.Errorf("pull %d: %d entries landed, %d were told, the end: %v", i, in, one.Records, one.all())
		}
	}
	s.untouched(0)
	s.untouched(4)
}

func TestAnAnswerEndsWithTheRangeAndWithWhatDoesNotFit(t *testing.T) {
	s := newLandedSource(t, 10, 10_000)
	got, wire := s.pulls(0, pullsTogether, 10_000)
	if len(got) != 1 || !got[0].all() || len(wire) != 0 {
		t.Errorf("%d pulls of a range that fits one, %d bytes over the wire", len(got), len(wire))
	}
	s = newLandedSource(t, 1000, 1000)
	got, wire = s.pulls(0, pullsTogether, 20_000)
	if len(got) != 1 || got[0].all() || uint32(entriesIn(s.here(0, got[0]))+entriesIn(wire)) != got[0].Records {
		t.Errorf("%d pulls that do not fit their slot", len(got))
	}
}

// endingOrigin has a migration that is over after some questions of it.
type endingOrigin struct {
	given
	left int
}

func (o *endingOrigin) Given(ctx context.Context, id ID, to view.NodeID) (meta.Migration, error) {
	if o.left--; o.left < 0 {
		return meta.Migration{}, errors.New("it is over")
	}
	return o.given.Given(ctx, id, to)
}

func TestPullsBeforeOneThatFailsCountAndTheNextQuestionIsToldWhy(t *testing.T) {
	s := newLandedSource(t, 1000, 1000)
	s.origin = &endingOrigin{s.origin.(given), 2}
	got, wire := s.pulls(0, pullsTogether, 1000)
	if len(got) != 2 || len(wire) != 0 || got[1].all() {
		t.Errorf("%d pulls were done, %d bytes came over the wire", len(got), len(wire))
	}
	s.untouched(2)
	ask := pullInto{pull: pull{ID: 1, Range: view.Whole, Bytes: 1000, Cursor: got[1].Cursor}, Landing: markOf(s.land.share), Pulls: 1}
	if _, _, err := s.pullInto(t.Context(), peer.NewCall("target", ask.encode(nil), nil, nil)); err == nil {
		t.Error("it goes on after its end")
	}
}

// What has landed would wait for the disk, too, and a question that asks for many records there would have to be asked again.
func TestOnlyTheFirstPullOfAQuestionWaitsForADisk(t *testing.T) {
	m := meta.Migration{ID: 1, Source: "source", Target: "target", Ranges: view.RangesOf(view.Whole), Stage: meta.Moving}
	shelf := NewShelf(coldSource(t, coldRecords))
	t.Cleanup(shelf.Close)
	s := NewSource(given{m: m, shelf: shelf})
	pulled := func(ask pull, mayWait bool) (landed, error) {
		c := peer.NewCall("target", nil, nil, nil)
		got, err := s.pulled(t.Context(), c, &ask, slot{}, mayWait)
		if _, sent := c.Gathered(); sent != nil {
			sent()
		}
		return got, err
	}
	ask := pull{ID: 1, Range: view.Whole, Bytes: 1 << 10}
	for range 50 {
		got, err := pulled(ask, false)
		if errors.Is(err, errCold) {
			if got, err = pulled(ask, true); err != nil || got.Records == 0 {
				t.Fatalf("%d records came after a wait: %v", got.Records, err)
			}
			return
		}
		check(t, err)
		ask.Cursor = got.Cursor
	}
	t.Fatal("nothing was cold")
}

func TestAQuestionOfNoPullsOrOfManyIsRefused(t *testing.T) {
	s := newLandedSource(t, 10, 1000)
	for _, n := range []uint32{0, pullsTogether + 1, 1 << 31} {
		ask := pullInto{pull: pull{ID: 1, Range: view.Whole, Bytes: 1000}, Landing: markOf(s.land.share), Pulls: n}
		if _, _, err := s.pullInto(t.Context(), peer.NewCall("target", ask.encode(nil), nil, nil)); !errors.Is(err, peer.ErrMalformed) {
			t.Errorf("%d pulls: %v", n, err)
		}
	}
	s.untouched(0)
}

func TestAnAnswerOfPullsThatCannotBeIsRefused(t *testing.T) {
	on, end := landed{pulled: pulled{Cursor: store.PullCursor{At: 1}, Records: 1}}, landed{}
	cold := on
	cold.Cold = 1
	for _, c := range []struct {
		what string
		head []byte
		ok   bool
	}{
		{"two pulls", on.append(on.append(nil)), true},
		{"the last of them at the end", end.append(on.append(nil)), true},
		{"the last of them with a bulk", cold.append(on.append(nil)), true},
		{"one behind the end", on.append(end.append(nil)), false},
		{"one behind a bulk", on.append(cold.append(nil)), false},
		{"more than were asked for", on.append(on.append(on.append(nil))), false},
		{"none", nil, false},
		{"half a pull", on.append(nil)[:landedBytes/2], false},
	} {
		if got, err := landedOf(c.head, 2, nil); (err == nil) != c.ok || c.ok && len(got) != 2 {
			t.Errorf("%s: %d pulls, %v", c.what, len(got), err)
		}
	}
}

func TestOnlySmallPullsShareAQuestion(t *testing.T) {
	for bytes, want := range map[int]int{1 << 10: pullsTogether, 20 << 10: pullsTogether, 30 << 10: 2, 80 << 10: 1, 4 << 20: 1} {
		if got := together(bytes); got != want {
			t.Errorf("%d pulls of %d bytes, want %d", got, bytes, want)
		}
	}
}

func TestNothingLandsInWhatIsNotNeededAnyMore(t *testing.T) {
	const n = 10
	s := newLandedSource(t, n, 10_000)
	s.landAs(true)
	_, here, wire := s.pull(0)
	if len(here) != 0 || entriesIn(wire) != n {
		t.Errorf("%d bytes landed, and %d of %d records came over the wire", len(here), entriesIn(wire), n)
	}
	s.untouched(0)
}

func TestASlotThatDoesNotExistIsNotWrittenTo(t *testing.T) {
	const n = 10
	s := newLandedSource(t, n, 10_000)
	ask := pullInto{pull: pull{ID: 1, Range: view.Whole, Bytes: 1 << 20}, Landing: markOf(s.land.share), Slot: 1 << 31, Pulls: 2}
	c := peer.NewCall("target", ask.encode(nil), nil, nil)
	_, _, err := s.pullInto(t.Context(), c)
	check(t, err)
	pieces, sent := c.Gathered()
	defer sent()
	if got := entriesIn(slices.Concat(pieces...)); got != n {
		t.Errorf("%d of %d records came over the wire", got, n)
	}
}

func TestAnAnswerBeyondItsSlotIsRefused(t *testing.T) {
	l, err := newLanding(2, 1000)
	check(t, err)
	defer l.memory.Close()
	if _, err := l.landed(0, uint32(l.room)+1); err == nil {
		t.Error("it was taken")
	}
}

func TestASourceKeepsOnlySoManyLandings(t *testing.T) {
	s := newLandedSource(t, 1, 1000)
	first := s.land
	for range maxGrounds() {
		var err error
		s.land, err = newLanding(1, 1000)
		check(t, err)
		s.landAs(false)
		check(t, s.land.memory.Close())
	}
	if got := len(s.grounds.all); got != maxGrounds() {
		t.Errorf("%d landings", got)
	}
	s.land = first
	if _, here, wire := s.pull(0); len(here) != 0 || entriesIn(wire) != 1 {
		t.Error("the oldest is still there")
	}
}

func TestASourceThatKnowsNoLandingsIsPulledFromOverTheWire(t *testing.T) {
	const n = 3000
	p := pullsOf(t, filled(t, n), 1000, 3, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
		to.HandleQuietly(methodPull, s.pull) // As before there were landings.
	})
	check(t, p.all(t.Context()))
	if got, landed := p.m.records.Load(), p.m.landed.Load(); got != n || landed != 0 {
		t.Errorf("%d of %d records came, and %d bytes through memory", got, n, landed)
	}
}

// slowOrigin has a target whose pull waits until the test lets it go, as for a disk, and whose migration is over meanwhile.
type slowOrigin struct {
	given
	slow   view.NodeID
	pulls  atomic.Bool // the next question is that of its pull
	waits  chan struct{}
	goes   chan struct{}
	isOver atomic.Bool
}

func (o *slowOrigin) Given(ctx context.Context, id ID, to view.NodeID) (meta.Migration, error) {
	switch {
	case to == o.slow && o.pulls.CompareAndSwap(true, false):
		close(o.waits)
		<-o.goes
	case to == o.slow && o.isOver.Load():
		return meta.Migration{}, errors.New("it is over")
	}
	return o.given.Given(ctx, id, to)
}

// Another target's pulls would come over the wire if its landing had to wait.
func TestALandingWaitsForNoPullOfAnotherTarget(t *testing.T) {
	const n = 10
	s := newLandedSource(t, n, 10_000)
	slow := &slowOrigin{given: s.origin.(given), slow: "target", waits: make(chan struct{}), goes: make(chan struct{})}
	s.origin = slow
	slow.pulls.Store(true)
	pulled := make(chan int)
	go func() {
		_, here, _ := s.pull(1)
		pulled <- entriesIn(here)
	}()
	<-slow.waits
	slow.isOver.Store(true)
	other := landedSource{s.Source, t, newTestLanding(t, 1000)}
	other.landFrom("other", false)
	if got := len(s.grounds.all); got != 1 {
		t.Errorf("%d landings, of which one is over", got)
	}
	close(slow.goes)
	if got := <-pulled; got != n { // The memory was there until its last user had left.
		t.Errorf("%d of %d records landed", got, n)
	}
}
