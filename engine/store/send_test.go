package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// sending is a store whose records of some places were sent to another node.
type sending struct {
	t      *testing.T
	dev    *device.Memory
	now    atomic.Int64
	serves atomic.Bool // all places
	given  []Range
	st     *Store
	ss     *Session
}

func (s *sending) open() {
	s.t.Helper()
	st, err := Open(Options{
		Device: s.dev, Durability: EverySec, Cluster: true, SegmentBytes: 16 << 10, Heads: 1,
		Now:    func() int64 { return s.now.Load() },
		Given:  s.given,
		Serves: func() func(record.Place) bool { return func(record.Place) bool { return s.serves.Load() } },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.st = st
	if s.ss, err = st.NewSession(); err != nil {
		s.t.Fatal(err)
	}
}

// crash ends the store as a kill does: what is next has the log only.
func (s *sending) crash() {
	s.t.Helper()
	after := s.dev.Crash()
	s.ss.Close()
	if err := s.st.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.dev = after
}

func (s *sending) put(key, value string, expire int64) {
	s.t.Helper()
	s.ss.Begin()
	k := s.ss.Key(0, []byte(key))
	if st := s.ss.Put(&k, Write{Value: []byte(value), ExpireAt: expire}, nil); st != OK {
		s.t.Fatal(st, s.ss.Err())
	}
	ticket := s.ss.Seal()
	s.ss.End()
	if err := s.ss.WaitDurable(ticket); err != nil {
		s.t.Fatal(err)
	}
}

// fill writes until the segment that has a key is at rest.
func (s *sending) fill(key string) {
	s.t.Helper()
	_, _, in := s.get(key)
	for i := 0; !s.st.log.AtRest(in); i++ {
		s.put(fmt.Sprint(in.ID, ":", i), fmt.Sprintf("%01000d", i), 0)
	}
}

// get gives what a key is; empty if it is not there.
func (s *sending) get(key string) (value string, version uint64, in *hlog.Segment) {
	s.ss.Begin()
	defer s.ss.End()
	k := s.ss.Key(0, []byte(key))
	v, st := s.ss.Get(&k)
	if st != OK {
		return "", 0, nil
	}
	return string(v.Value), v.Version, s.st.log.Segment(v.at.Slot())
}

// sweepAll has everything go whose time is over, as background work would.
func (s *sending) sweepAll() {
	s.t.Helper()
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		var all []index.Probe
		s.ss.Begin()
		cursor = s.st.ix.Step(cursor, sweepBuckets, func(pr *index.Probe) bool {
			all = append(all, *pr)
			return true
		})
		for i := range all {
			s.ss.dropExpired(&all[i])
		}
		s.ss.Seal()
		s.ss.End()
	}
	s.st.auditExpired(s.t.Context(), s.ss)
	for _, seg := range s.st.log.Segments() {
		if seg.Closed() {
			if err := s.st.clean(seg); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// sends has the store send all of a key's place to its owner, and gives what that was.
func (s *sending) sends(key string) (sent []byte) {
	s.t.Helper()
	k := s.ss.Key(0, []byte(key))
	err := s.st.SendAll(s.t.Context(), []Owner{{ID: 1, Ranges: []Range{{k.Place, k.Place}}, Send: func(_ context.Context, p Parcel, drop func()) error {
		sent = append(sent, p.Entries...)
		drop()
		return nil
	}}})
	if err != nil || len(sent) == 0 {
		s.t.Fatal(len(sent), err)
	}
	return sent
}

// takeBack imports what the owner's log has.
func (s *sending) takeBack(entries []byte) {
	s.t.Helper()
	im, err := s.st.NewImporter(ImportOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := im.NewWorker()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := w.Import(s.t.Context(), entries); err != nil {
		s.t.Fatal(err)
	}
	if err := im.Finish(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// The owner of what was sent removes it, by a deletion or by time, and then its log is replayed here: it has no need of this one's older
// versions, and this one has nothing in its index that could be removed. The log has them all the same.
func TestWhatAnOwnerRemovedStaysAwayThoughOnlyItsLogHasWhatWasSent(t *testing.T) {
	for _, gone := range []record.Type{record.TypeTombstone, record.TypePut} {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			s := &sending{t: t, dev: device.NewMemory()}
			s.serves.Store(true)
			s.open()
			s.put("k", "old", 0)
			s.fill("k")
			s.put("k", "new", 0)
			s.fill("k")
			_, version, in := s.get("k")
			s.serves.Store(false)
			s.sends("k")
			if err := s.st.clean(in); err != nil {
				t.Fatal(err)
			}

			s.now.Store(100)
			s.serves.Store(true) // The owner has died, or given it back.
			h := record.Header{Type: gone, Version: version + 1}
			if gone == record.TypePut {
				h.ExpireAt = 50
			}
			b := make([]byte, 1<<10)
			s.takeBack(b[:record.Encode(b, &h, []byte("k"), nil, true)])
			for life := range 2 {
				if got, _, _ := s.get("k"); got != "" {
					t.Fatalf("life %d: it is %q, and was removed", life, got)
				}
				s.crash()
				s.open()
			}
			s.crash()
		})
	}
}

// An index as it was saved has nothing of what was sent before, and who begins with it does not replay what lies below.
func TestWhatAnOwnerRemovedStaysAwayThoughTheSourceBeganAnewWithASavedIndex(t *testing.T) {
	for _, saved := range []string{"before it was sent", "after it was sent"} {
		t.Run(saved, func(t *testing.T) {
			s := &sending{t: t, dev: device.NewMemory()}
			s.serves.Store(true)
			s.open()
			s.put("k", "old", 0)
			s.fill("k")
			s.put("k", "new", 0)
			s.fill("k")
			_, version, in := s.get("k")
			save := func(now bool) {
				if !now {
					return
				}
				if err := s.st.Checkpoint(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			save(saved == "before it was sent")
			s.serves.Store(false)
			s.sends("k")
			if err := s.st.clean(in); err != nil {
				t.Fatal(err)
			}
			save(saved == "after it was sent")
			k := s.ss.Key(0, []byte("k"))
			s.given = []Range{{k.Place, k.Place}}
			s.crash()
			s.open()
			if was, _, _ := s.get("k"); was != "" {
				t.Fatalf("the test is for an index that has nothing of the key, which is %q", was)
			}

			s.serves.Store(true)
			h := record.Header{Type: record.TypeTombstone, Version: version + 1}
			b := make([]byte, 1<<10)
			s.takeBack(b[:record.Encode(b, &h, []byte("k"), nil, true)])
			s.crash()
			if err := s.dev.RemoveMeta(SnapshotMeta); err != nil {
				t.Fatal(err)
			}
			s.given = nil
			s.open()
			if got, _, _ := s.get("k"); got != "" {
				t.Fatalf("it is %q, and was removed", got)
			}
			s.crash()
		})
	}
}

func TestSlotsThatAreGoneAltogetherAreOutOfASet(t *testing.T) {
	var s slotSet
	slot := func(n int) Range {
		return Range{record.Place(n) << placeHashBits, record.Place(n)<<placeHashBits | slotRest}
	}
	for _, n := range []int{0, 70, 71, 1<<14 - 1} {
		s.add(slot(n).First + 5)
	}
	s.remove([]Range{slot(0), {slot(69).First, slot(70).Last}, {slot(71).First, slot(71).Last - 1}, {slot(72).First, ^record.Place(0)}})
	for n, want := range map[int]bool{0: false, 70: false, 71: true, 1<<14 - 1: false} {
		if s.has(slot(n).Last) != want {
			t.Errorf("slot %d is there: %v", n, !want)
		}
	}
}

// What was sent to its owner is dropped without a tombstone, so that an older version may come back with a restart. If that
// is removed for its time is over, its deletion has the version of what was sent.
func TestWhatAnOlderVersionLeavesBehindDoesNotHideWhatItsOwnerGivesBack(t *testing.T) {
	s := &sending{t: t, dev: device.NewMemory()}
	s.serves.Store(true)
	s.open()
	s.put("k", "old", 100)
	s.fill("k")
	s.put("k", "new", 0)
	s.fill("k")
	value, version, in := s.get("k")
	s.serves.Store(false)
	sent := s.sends("k")
	if err := s.st.clean(in); err != nil {
		t.Fatal(err)
	}
	s.crash()
	s.now.Store(50)
	s.open()
	if was, ver, _ := s.get("k"); was != "old" || ver+1 != version {
		t.Fatalf("the test is for older versions that come back, but it is %q of version %d, after %d was sent", was, ver, version)
	}
	s.now.Store(200)
	s.sweepAll()

	s.serves.Store(true) // The owner has died, and its log is replayed here.
	s.takeBack(sent)
	for life := range 2 {
		if got, _, _ := s.get("k"); got != value {
			t.Fatalf("life %d: it is %q, not %q", life, got, value)
		}
		s.crash()
		s.open()
	}
	s.crash()
}
