package store

import (
	"errors"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// OldSegments lists segments that nothing is appended to any more, by increasing id, and the first id that is
// not among them. What is moved out of these from now on lies in segments from there on: see
// PullOptions.Since.
func (st *Store) OldSegments() (ids []record.SegmentID, since record.SegmentID) {
	all := st.log.Segments()
	since = st.log.NextID()
	for _, s := range all {
		if !s.Closed() {
			since = min(since, s.ID)
		}
	}
	for _, s := range all {
		if s.ID < since {
			ids = append(ids, s.ID)
		}
	}
	return ids, since
}

// errNoEntry is for a cursor that no pull gave. One within an entry may go unnoticed for a while: then nothing is given, as the index points
// at none of what seems to be there.
var errNoEntry = errors.New("no entry begins where a pull of a segment is to go on: who pulls must be checked")

// ReadSegment is a closed segment to pull from, in memory of its own if it is not in the log's.
type ReadSegment struct {
	seg  *hlog.Segment
	cold []byte
}

// ErrSegmentGone says that a segment was cleaned away: what was alive in it is elsewhere.
var ErrSegmentGone = hlog.ErrGone

var errOpenSegment = errors.New("the segment is not closed: records may still be written to it")

// ReadSegment gets a segment at hand. The caller is outside of any round.
func (st *Store) ReadSegment(id record.SegmentID) (*ReadSegment, error) {
	s := st.log.ByID(id)
	switch {
	case s == nil:
		return nil, ErrSegmentGone
	case !s.Closed():
		return nil, errOpenSegment
	case st.log.InMemory(s):
		return &ReadSegment{seg: s}, nil
	}
	b, err := st.log.Load(s)
	return &ReadSegment{s, b}, err
}

// PullSegment is Pull of the records in one segment that are alive and of some ranges, in the
// order of the log; At is an offset. answered is told of all that is alive there, given or not; it may be nil.
// A cursor that was not returned before is refused, or nothing is given. With ErrSegmentGone in Err the segment went out of memory, or altogether: read it again.
func (ss *Session) PullSegment(from *ReadSegment, ranges []Range, at PullCursor, maxBytes int, emit func([]byte), answered func(Indirection)) (PullCursor, Status) {
	b := from.cold
	if b == nil {
		b = ss.st.log.Bytes(from.seg)
	}
	if b == nil || ss.st.log.ByID(from.seg.ID) != from.seg {
		return at, ss.fail(ErrSegmentGone)
	}
	g := segmentGiver{pullGiver{ss: ss, exact: true, left: maxBytes, emit: emit}, ranges, answered}
	if at.At%8 != 0 || at.At > uint64(len(b)) {
		return at, ss.fail(errNoEntry)
	}
	for off := uint32(at.At); off < uint32(len(b)); {
		if !record.Fits(b[off:]) {
			return at, ss.fail(errNoEntry)
		}
		p := record.PtrOf(b[off:])
		next, st := g.entry(record.MakeAddress(from.seg.Slot, off), from.seg.ID, p, at)
		if st != OK || next != 0 {
			return PullCursor{At: uint64(off), Value: 1, Piece: next}, st
		}
		at = PullCursor{}
		off += uint32(p.Length())
		g.left -= p.Length() / passedShare
		if g.left <= 0 && off < uint32(len(b)) {
			return PullCursor{At: uint64(off)}, OK
		}
	}
	return PullCursor{}, OK
}

// passedShare is how much less of a pull an entry takes that is only looked at.
const passedShare = 8

// segmentGiver gives what one call of PullSegment gives.
type segmentGiver struct {
	pullGiver
	ranges   []Range
	answered func(Indirection)
}

// entry gives the entry at a if it is alive and wanted. It returns the piece of a large value to go on with, or 0.
func (g *segmentGiver) entry(a record.Address, id record.SegmentID, p record.Ptr, at PullCursor) (next uint64, st Status) {
	if !isRecord(p) {
		return 0, OK
	}
	place := placeOf(p)
	var pr index.Probe
	if !g.concerns(place, p) || !isAt(g.ss.st.ix, place, a, &pr) {
		return 0, OK
	}
	if g.counts(p) {
		it := pullItem{at: a, p: p}
		if !p.Chunked() {
			g.give(&it)
		} else if next, st = g.large(&it, at.Piece); st != OK || next != 0 {
			return next, st
		}
	}
	if g.answered != nil {
		g.left -= indirectionBytes
		g.answered(Indirection{Known: index.Known(place), Segment: id, Offset: a.Offset()})
	}
	return 0, OK
}

// concerns tells whether an entry that is indexed at a place may be in the ranges, or may have been
// taken for such a one.
func (g *segmentGiver) concerns(place record.Place, p record.Ptr) bool {
	of, ok := PlaceOfEntry(p)
	switch {
	case ok && anyHas(g.ranges, of):
		return true
	case g.answered == nil || g.counts(p):
		return false
	}
	return anyHas(g.ranges, place)
}
