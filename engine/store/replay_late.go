package store

import (
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// deferred is what replay comes back to when all segments are through.
type deferred struct {
	tombs  []buried
	large  []record.Address // fronts of large values
	chunks []record.Address
}

// finishReplay replays large values, drops chunks that belong to none, and
// takes the tombstones out of the index. All of it is in memory.
func (st *Store) finishReplay(parts []deferred) error {
	st.keeper.Begin()
	defer st.keeper.End()
	for _, d := range parts {
		for _, a := range d.large {
			st.keeper.replayLarge(a)
		}
	}
	for _, d := range parts {
		for _, a := range d.chunks {
			st.keeper.dropOrphan(a)
		}
		st.unbury(d.tombs)
	}
	return st.keeper.err
}

// replayLarge replays the front of a large value, if all its chunks are there.
// They were written before it, but a loss of power may have taken them; then
// the value before counts, as if this one had been lost as a whole.
func (ss *Session) replayLarge(a record.Address) {
	p, ok := ss.st.log.Entry(a)
	if !ok {
		return
	}
	m, ok := decodeManifest(p.Value())
	if ok && ss.haveChunks(m, placeOf(p)) != Conflict {
		ss.replay(a, p)
		return
	}
	ss.head.Died(a, uint32(p.Length()))
}

// dropOrphan drops a chunk whose record names it no more: it would take its
// room for ever, for the cleaner seeks segments with garbage.
func (ss *Session) dropOrphan(a record.Address) {
	p, ok := ss.st.log.Entry(a)
	c := cleaning{st: ss.st, ss: ss, replay: true}
	if !ok || !c.orphan(p) {
		return
	}
	var pr index.Probe
	if isAt(ss.st.ix, placeOf(p), a, &pr) && ss.st.ix.Remove(&pr) {
		ss.head.Died(a, uint32(p.Length()))
	}
}

// buried is a tombstone that stands in the index during replay, so that older
// records of its key stay out.
type buried struct {
	place   record.Place
	at      record.Address
	version uint64
}

// unbury takes the tombstones out of the index again.
func (st *Store) unbury(tombs []buried) {
	for _, t := range tombs {
		st.floors.raise(t.place, t.version)
		var pr index.Probe
		st.ix.Seek(t.place, &pr)
		for pr.Next() {
			if pr.Address() == t.at {
				if p, ok := st.log.Entry(t.at); ok && st.arriving.any() {
					st.settleReplayed(t.place, p)
				}
				st.ix.Remove(&pr)
				break
			}
		}
	}
}
