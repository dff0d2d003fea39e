package store

import (
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Indirection is word of a record that the source of a migration has on disk: what its index
// knows without reading it. The record may turn out to be of another place with the same known
// bits, a piece of a large value, or expired.
type Indirection struct {
	Known   record.Place     // index.Known of its place
	Segment record.SegmentID // of the source's log; 0 if it is to be found by its place only
	Offset  uint32
}

// indirections are what an arrival knows of cold records that are still at the source: an index
// of their own, in which they have the same known bits as in the source's. They are kept in
// memory only, for a target that dies pulls everything again.
//
// A key that has no record and shares its known bits with none of them does not exist, once
// its range was pulled. So a record is imported first, and its indirection goes then: who
// looks in the other order finds one of the two, or looks again.
type indirections struct {
	ix   *index.Index
	left atomic.Int64
	// stripes count them by the first bits of their places, for those who have no guard.
	stripes [indirectStripes]atomic.Int32

	mu       sync.RWMutex
	numbers  map[record.SegmentID]uint32 // slots of addresses in ix, from 1 on
	segments []record.SegmentID          // the other way round; the first is of nobody
}

const (
	indirectStripeBits = 12
	indirectStripes    = 1 << indirectStripeBits
)

func stripeOf(p record.Place) int { return int(p >> (64 - indirectStripeBits)) }

func newIndirections(st *Store) (*indirections, error) {
	ix, err := index.New(index.Options{Epoch: st.epoch})
	if err != nil {
		return nil, err
	}
	return &indirections{ix: ix, numbers: map[record.SegmentID]uint32{}, segments: []record.SegmentID{0}}, nil
}

// count is how many there are.
func (in *indirections) count() int64 {
	if in == nil {
		return 0
	}
	return in.left.Load()
}

// bytes is the memory that they take.
func (in *indirections) bytes() int64 {
	if in == nil {
		return 0
	}
	return in.ix.Bytes()
}

// at is the address of an indirection in ix.
func (in *indirections) at(i *Indirection) record.Address {
	in.mu.RLock()
	n := in.numbers[i.Segment]
	in.mu.RUnlock()
	if n == 0 {
		n = in.number(i.Segment)
	}
	return record.MakeAddress(n, i.Offset)
}

func (in *indirections) number(id record.SegmentID) uint32 {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.numbers[id] == 0 {
		in.numbers[id] = uint32(len(in.segments))
		in.segments = append(in.segments, id)
	}
	return in.numbers[id]
}

// add adds one, unless it is there. The caller is inside a guard.
func (in *indirections) add(i Indirection) error {
	a, stripe := in.at(&i), &in.stripes[stripeOf(i.Known)]
	stripe.Add(1) // Before it is there: another may remove it at once.
	in.left.Add(1)
	for round := 0; ; round++ {
		var pr index.Probe
		result := index.Full
		there := in.seek(i.Known, a, &pr)
		if !there {
			if result = in.ix.Insert(&pr, a); result == index.Inserted {
				return nil
			}
		}
		if there || result == index.Full {
			stripe.Add(-1)
			in.left.Add(-1)
		}
		switch {
		case there:
			return nil
		case result == index.Full:
			return ErrIndexFull
		}
		yield(round)
	}
}

// seek looks for an indirection with the known bits of p, at a if that is not 0. If there is
// none, pr has seen all others. The caller is inside a guard.
func (in *indirections) seek(p record.Place, a record.Address, pr *index.Probe) bool {
	in.ix.Seek(p, pr)
	for pr.Next() {
		if pr.SamePlace() && (a == 0 || pr.Address() == a) {
			return true
		}
	}
	return false
}

// has tells whether a record of a place may be among them. The caller is inside a guard.
func (in *indirections) has(p record.Place) bool {
	if in == nil || in.stripes[stripeOf(p)].Load() == 0 {
		return false
	}
	var pr index.Probe
	return in.seek(p, 0, &pr)
}

// meets tells whether some may be in one of the ranges, or near it.
func (in *indirections) meets(r Range) bool {
	if in.count() == 0 {
		return false
	}
	for s := stripeOf(r.First); s <= stripeOf(r.Last); s++ {
		if in.stripes[s].Load() != 0 {
			return true
		}
	}
	return false
}

// remove takes out those with the known bits of p, at a if that is not 0. It tells how many, and whether the
// last near there has gone. The caller is inside a guard.
func (in *indirections) remove(p record.Place, a record.Address) (n int64, cleared bool) {
	for round := 0; ; round++ {
		var pr index.Probe
		if !in.seek(p, a, &pr) {
			return n, cleared
		}
		if !in.ix.Remove(&pr) {
			yield(round)
			continue
		}
		n++
		in.left.Add(-1)
		cleared = in.stripes[stripeOf(p)].Add(-1) == 0 || cleared
	}
}

// where lists those with the known bits of p. The caller is inside a guard.
func (in *indirections) where(p record.Place) (all []Indirection) {
	if in.stripes[stripeOf(p)].Load() == 0 {
		return nil
	}
	var pr index.Probe
	in.ix.Seek(p, &pr)
	for pr.Next() {
		if a := pr.Address(); a != 0 && pr.SamePlace() {
			all = append(all, Indirection{Known: index.Known(p), Segment: in.segmentOf(a.Slot()), Offset: a.Offset()})
		}
	}
	return all
}

// segmentOf is the source's segment that has a number here.
func (in *indirections) segmentOf(n uint32) record.SegmentID {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.segments[n]
}

// some gives the places of about n of them from a cursor on, and where to go on; 0 is the end.
// The caller is inside a guard.
func (in *indirections) some(cursor uint64, n int) (places []record.Place, next uint64) {
	for next = cursor; len(places) < n; {
		next = in.ix.Step(next, 1, func(pr *index.Probe) bool {
			places = append(places, pr.Place())
			return true
		})
		if next == 0 {
			break
		}
	}
	return places, next
}

// named lists the source's segments that some of them were in, in the order in which they came.
func (in *indirections) named() (ids []record.SegmentID) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	for _, id := range in.segments[1:] {
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
