package store

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// A source keeps records of places that are another node's for as long as that may ask for them. The cleaner need not copy
// them: before it comes to a segment they are sent to their owner, and when that has them for good they are dropped here, without a
// tombstone. Older versions of their keys may come back with the next start: the owner's log has a newer one, expired or not,
// or the tombstone of one, for as long as this store's log is needed for these places. If they become this store's again, by an import
// of the owner's log, that one goes. So of keys that are in no index here the import must leave tombstones in this log: see dropped.
//
// Large values, results of operations and what has expired are left to the cleaner.

// Owner is another node, whose some places are now.
type Owner struct {
	ID     uint64 // tells it from others, and from what it was before
	Ranges []Range
	// Send gives it records. It calls drop when the owner has them for good, if until drop has returned nothing of these
	// ranges is imported here.
	Send func(ctx context.Context, p Parcel, drop func()) error
}

// Parcel are records that are sent to their owner.
type Parcel struct {
	Entries []byte        // as they lie in the log, one after the other
	At      []Indirection // where each of them lies
}

const (
	sendEvery   = 200 * time.Millisecond
	sendRest    = 10 * time.Second // after a failure
	sendVictims = 8                // segments that are looked at at once
	sendBytes   = 2 << 20          // about so much goes at once
)

// sender is what a store knows of sending.
type sender struct {
	mu    sync.Mutex
	to    []uint64 // the owners that there are
	done  map[*hlog.Segment]bool
	again time.Time // not before this time, as the last attempt failed

	dropped slotSet // of what was sent: the log may have older versions of keys there which the index has nothing of
}

// droppedBefore notes that a former life may have dropped what it sent of the places that others have. Who begins with an index as it was
// saved does not see what that index had nothing of.
func (st *Store) droppedBefore() {
	for _, r := range st.opts.Given {
		for p := r.First &^ slotRest; ; p += slotRest + 1 {
			st.sender.dropped.add(p)
			if p|slotRest >= r.Last {
				break
			}
		}
	}
}

// slotSet is a set of slots.
type slotSet [1 << 14 / 64]atomic.Uint64

func (s *slotSet) add(p record.Place) {
	if slot := p >> placeHashBits; !s.has(p) {
		s[slot/64].Or(1 << (slot % 64))
	}
}

// remove takes the slots out of which ranges have all.
func (s *slotSet) remove(ranges []Range) {
	for slot := range record.Place(len(s) * 64) {
		all := Range{slot << placeHashBits, slot<<placeHashBits | slotRest}
		if s.has(all.First) && slices.ContainsFunc(ranges, func(r Range) bool { return r.has(all.First) && r.has(all.Last) }) {
			s[slot/64].And(^uint64(1 << (slot % 64)))
		}
	}
}

func (s *slotSet) has(p record.Place) bool {
	slot := p >> placeHashBits
	return s[slot/64].Load()&(1<<(slot%64)) != 0
}

// sendLoop sends what the cleaner would come to next.
func (st *Store) sendLoop(ctx context.Context) {
	if st.opts.Owners == nil {
		return
	}
	every(ctx, sendEvery, nil, func() {
		for ctx.Err() == nil && st.sendSome(ctx) {
			st.room.ask() // The cleaner may come.
		}
	})
}

// follow notes who the owners are, and tells whether they may be sent something.
func (s *sender) follow(owners []Owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]uint64, len(owners))
	for i, o := range owners {
		ids[i] = o.ID
	}
	if !slices.Equal(ids, s.to) {
		s.to, s.done, s.again = ids, nil, time.Time{}
	}
	return len(ids) > 0 && !time.Now().Before(s.again)
}

// waits tells whether the cleaner should not come to a segment yet: some of it is to be sent first.
func (s *sender) waits(seg *hlog.Segment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.to) > 0 && !time.Now().Before(s.again) && !s.done[seg]
}

// sent notes that nothing is left to send of some segments.
func (s *sender) sent(segs []*hlog.Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = map[*hlog.Segment]bool{}
	}
	for _, seg := range segs {
		s.done[seg] = true
	}
}

func (s *sender) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = time.Now().Add(sendRest)
}

// sendSome sends what some segments have of others' places; false if there was nothing to look at.
func (st *Store) sendSome(ctx context.Context) bool {
	owners := st.opts.Owners()
	if !st.sender.follow(owners) || st.garbage() <= tidyGarbage {
		return false
	}
	ss, err := st.NewSession()
	if err != nil {
		return false
	}
	defer ss.Close()
	var victims []*hlog.Segment
	for _, v := range st.victims(sendVictims, tidyVictim, st.sender.waits) {
		victims = append(victims, v.seg)
	}
	done, err := ss.sendFrom(ctx, victims, owners)
	st.sender.sent(done)
	if err != nil {
		if ctx.Err() == nil {
			st.opts.Logger.Warn("records of another node's places were not sent to it; they are kept for now", "segments", len(victims), "error", err)
		}
		st.sender.failed()
		return false
	}
	return len(done) > 0
}

// sendFrom sends what segments have of others' places, as many of them as are sent at once. It returns those of which nothing
// is left to send.
func (ss *Session) sendFrom(ctx context.Context, segs []*hlog.Segment, owners []Owner) (done []*hlog.Segment, err error) {
	parcels := make([]parcel, len(owners))
	for bytes := 0; len(done) < len(segs) && bytes < sendBytes; {
		s := segs[len(done)]
		n, err := ss.pack(s, owners, parcels)
		if err != nil {
			return nil, err
		}
		done, bytes = append(done, s), bytes+n
	}
	for i := range owners {
		if err := ss.send(ctx, &owners[i], &parcels[i]); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// parcel is a Parcel with what it takes to drop its records here.
type parcel struct {
	Parcel
	items []packed
}

type packed struct {
	place record.Place
	at    record.Address
	off   int // in Entries
}

// pack adds what a segment has of others' places to what they are sent. It returns how many bytes that were.
func (ss *Session) pack(s *hlog.Segment, owners []Owner, parcels []parcel) (n int, err error) {
	var cold []byte
	if !ss.st.log.InMemory(s) {
		if cold, err = ss.st.log.Load(s); err != nil {
			return 0, err
		}
	}
	for off := uint32(0); off < s.End(); {
		ss.Begin()
		b := cold
		if b == nil {
			b = ss.st.log.Bytes(s)
		}
		if b == nil || ss.st.log.ByID(s.ID) != s {
			ss.End()
			return n, nil // The cleaner has come, or it left memory: another time.
		}
		for range cleanStep {
			if off >= uint32(len(b)) {
				break
			}
			p := record.PtrOf(b[off:])
			n += ss.packEntry(record.MakeAddress(s.Slot, off), s.ID, p, owners, parcels)
			off += uint32(p.Length())
		}
		ss.End()
	}
	return n, nil
}

// packEntry adds an entry if it is alive and another's.
func (ss *Session) packEntry(a record.Address, id record.SegmentID, p record.Ptr, owners []Owner, parcels []parcel) int {
	if p.Type() != record.TypePut || p.Table() == chunkTable || p.Chunked() || ss.expired(p) || ss.tables.byID(p.Table()) == nil {
		return 0
	}
	place := record.PlaceOf(p.Table(), p.Key())
	i := slices.IndexFunc(owners, func(o Owner) bool { return anyHas(o.Ranges, place) })
	var pr index.Probe
	if i < 0 || !isAt(ss.st.ix, place, a, &pr) || pr.Locked() {
		return 0
	}
	to := &parcels[i]
	to.items = append(to.items, packed{place, a, len(to.Entries)})
	to.Entries = append(to.Entries, p.Bytes()...)
	to.At = append(to.At, Indirection{Known: index.Known(place), Segment: id, Offset: a.Offset()})
	return p.Length()
}

// send sends a parcel, and drops its records here.
func (ss *Session) send(ctx context.Context, o *Owner, p *parcel) error {
	if len(p.At) == 0 {
		return nil
	}
	return o.Send(ctx, p.Parcel, func() {
		for len(p.items) > 0 {
			n := min(len(p.items), cleanStep)
			ss.Begin()
			for _, it := range p.items[:n] {
				ss.dropSent(it, record.PtrOf(p.Entries[it.off:]))
			}
			ss.End()
			p.items = p.items[n:]
		}
	})
}

// dropSent takes a record out of the index if it is still where it was.
func (ss *Session) dropSent(it packed, p record.Ptr) {
	ss.st.sender.dropped.add(it.place)
	for round := 0; ; round++ {
		var pr index.Probe
		if !isAt(ss.st.ix, it.place, it.at, &pr) || pr.Locked() {
			return
		}
		if ss.ix.Remove(&pr) {
			ss.head.Died(it.at, uint32(p.Length()))
			if t := ss.tables.byID(p.Table()); t != nil {
				t.count(ss.n, worth{}.minus(worthOf(p)))
			}
			ss.st.work.sent.Add(1)
			return
		}
		yield(round)
	}
}
