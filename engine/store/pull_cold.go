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

// knownPlaces are looked for at once.
const knownPlaces = 16

// PullKnown is Pull of all records at places with the known bits of some. At counts the places.
// What it gives may be of other ranges.
func (ss *Session) PullKnown(places []record.Place, from PullCursor, maxBytes int, emit func(entry []byte)) (PullCursor, Status) {
	if ss.pulling == nil {
		ss.pulling = new(pulling)
	}
	g := pullGiver{ss: ss, exact: true, left: maxBytes, emit: emit, ahead: knownPlaces}
	for at := from; ; {
		ss.pulling.gatherKnown(ss, places, at.At)
		for b := range ss.pulling.n {
			next, st := g.bucket(b, at)
			if st != OK || next == (PullCursor{}) || g.left <= 0 {
				return next, st
			}
			at = next
		}
	}
}

// gatherKnown is gather by places.
func (pl *pulling) gatherKnown(ss *Session, places []record.Place, at uint64) {
	pl.clear()
	for ; pl.n < knownPlaces && (pl.n == 0 || at != 0); pl.n++ {
		if at < uint64(len(places)) {
			pl.seek(ss, places[at])
		}
		if at++; at >= uint64(len(places)) {
			at = 0
		}
		pl.upTo[pl.n], pl.next[pl.n] = len(pl.items), at
	}
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
