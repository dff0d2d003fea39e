package store

import (
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// What of pulls is about cold records: word of them, and how they are given later, by what the
// index knows of them or by their segment.

// indirectionBytes is about what one takes on the wire.
const indirectionBytes = 20

// say gives word of a cold record.
func (g *pullGiver) say(i Indirection) {
	g.left -= indirectionBytes
	g.refer(i)
}

// referAll gives word of all of bucket b that is not in memory. The range's border may cut what the
// index knows of one: then it may be of another range, and is found out when it is asked for.
func (g *pullGiver) referAll(b int) {
	for _, it := range g.ss.pulling.bucket(b) {
		if !it.p.IsNil() || it.at == 0 {
			continue
		}
		i := Indirection{Known: it.known, Offset: it.at.Offset()}
		if s := g.ss.st.log.Segment(it.at.Slot()); s != nil {
			i.Segment = s.ID
		}
		g.say(i)
	}
}

// leaveOut forgets the items of bucket b that lie in segments before since.
func (g *pullGiver) leaveOut(b int) {
	items := g.ss.pulling.bucket(b)
	for i := range items {
		if s := g.ss.st.log.Segment(items[i].at.Slot()); s != nil && s.ID < g.since {
			items[i] = pullItem{}
		}
	}
}

// knownPlaces is of how many places cold records are read at once.
const knownPlaces = 16

// PullKnown is PullKeys of all records at places with the known bits of some. What it gives may be of other ranges.
func (ss *Session) PullKnown(places []record.Place, from PullCursor, maxBytes int, emit func(entry []byte)) (Unsent, Status) {
	if ss.pulling == nil {
		ss.pulling = new(pulling)
	}
	ss.pulling.gatherKnown(ss, places)
	g := pullGiver{ss: ss, exact: true, left: maxBytes, emit: emit, ahead: knownPlaces}
	return g.inTurn(len(places), func() (PullCursor, Status) { return g.bucket(0, from) }, g.smallBucket)
}

// gatherKnown lists what there is at some places, a bucket each.
func (pl *pulling) gatherKnown(ss *Session, places []record.Place) {
	pl.clear()
	for _, p := range places {
		pl.seek(ss, p)
		pl.upTo[pl.n], pl.next[pl.n] = len(pl.items), 0
		pl.n++
	}
}

// smallBucket gives bucket b of those gathered if all of it is at hand and fits; if not, nothing of it.
func (g *pullGiver) smallBucket(b int) bool {
	if g.ahead = 1; !g.resolve(b) {
		return false
	}
	bytes := 0
	for _, it := range g.ss.pulling.bucket(b) {
		if !g.counts(it.p) {
			continue
		}
		if bytes += it.p.Length(); it.p.Chunked() || bytes > g.left {
			return false
		}
	}
	_, st := g.bucket(b, PullCursor{})
	return st == OK
}

// seek lists what the index has at a place.
func (pl *pulling) seek(ss *Session, p record.Place) {
	var pr index.Probe
	ss.ix.Seek(p, &pr)
	for pr.Next() {
		a := pr.Address()
		if a == 0 || !pr.SamePlace() {
			continue
		}
		pl.add(pullItem{at: a, p: ss.log.See(a).Entry(), known: index.Known(p)})
	}
}
