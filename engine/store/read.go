package store

import (
	"errors"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Get reads a record.
func (ss *Session) Get(k *Key) (v View, st Status) {
	st = ss.Read(k, &v)
	return v, st
}

// Read is Get into a view of the caller's: moving views around would be half of
// the work.
func (ss *Session) Read(k *Key, v *View) (st Status) {
	before := ss.leanings
	if !ss.tx.open {
		if a := ss.ix.First(k.Place); a != 0 && ss.glance(k, a, v) {
			v.leans = ss.leanings != before
			return OK
		}
	}
	*v, st = ss.get(k)
	v.leans = ss.leanings != before
	return st
}

// get reads a record wherever and whatever it is.
func (ss *Session) get(k *Key) (View, Status) {
	ss.stat.reads++
	if ss.tx.open {
		if w := ss.tx.find(k); w != nil {
			return ss.txnGet(w)
		}
	}
	var pr index.Probe
	for round := 0; ; round++ {
		p, st := ss.find(k, &pr)
		if st == NotFound && ss.st.arriving.any() {
			if st = ss.lacks(k); st == Conflict {
				yield(round)
				continue
			}
		}
		if st != OK {
			return ss.absent(k), st
		}
		if v, st := ss.view(pr.Address(), p); st != Conflict {
			if st == OK {
				ss.stat.hits++
				ss.touched(&pr, p)
			}
			return v, st
		}
		if round == readRounds {
			return View{}, ss.fail(errUnreadable)
		}
		yield(round)
	}
}

// readRounds bounds how often a read looks again; each time somebody else has
// changed the record, unless it is damaged.
const readRounds = 1 << 20

var errUnreadable = errors.New("a large value lacks some of its pieces: run 'ostro check' on the data directory")

// absent is the view of a key that is not there.
func (ss *Session) absent(k *Key) View {
	ss.noteAbsence(k.Place)
	return View{floor: ss.st.floors.of(k.Place).Load()}
}

// view makes a view of the entry p at a. Conflict asks for another look: the
// record is being changed or was replaced.
func (ss *Session) view(a record.Address, p record.Ptr) (View, Status) {
	if !ss.st.opts.logged() && !ss.st.log.Frozen(a) {
		return ss.copied(a, p)
	}
	if !ss.st.log.Stable(a) {
		ss.note(a)
	}
	v := View{Version: versionOf(p), ExpireAt: p.ExpireAt(), Kind: p.Kind(), at: a}
	if v.ExpireAt != 0 && v.ExpireAt <= ss.now {
		return View{Version: v.Version, at: a}, NotFound
	}
	v.live = true
	if p.Chunked() {
		return ss.assemble(v, p)
	}
	v.Value = p.Value()
	return v, OK
}

// copied reads a record that others may update in place meanwhile.
func (ss *Session) copied(a record.Address, p record.Ptr) (View, Status) {
	ver := p.Version()
	if ver&record.VersionLock != 0 {
		return View{}, Conflict
	}
	v := View{Version: ver, ExpireAt: p.ExpireAt(), Kind: p.Kind(), at: a}
	chunked := p.Chunked()
	value := p.Value()
	v.Value = ss.arena.keep(value)
	if !p.Unchanged(ver) {
		return View{}, Conflict
	}
	if v.ExpireAt != 0 && v.ExpireAt <= ss.now {
		return View{Version: ver, at: a}, NotFound
	}
	v.live = true
	if chunked {
		return ss.assembleFrom(v, v.Value)
	}
	return v, OK
}

// Unchanged tells whether a key still is as in an earlier view. The view may
// be of an earlier round.
func (ss *Session) Unchanged(k *Key, v *View) (bool, Status) {
	now, st := ss.Get(k)
	if st == Cold {
		return false, Cold
	}
	if !now.live || !v.live {
		return now.live == v.live && ss.sameAbsence(&now, v), OK
	}
	return now.Version == v.Version, OK
}

// sameAbsence tells whether a key was absent all the time between two views.
func (ss *Session) sameAbsence(now, v *View) bool {
	if now.at == 0 && v.at == 0 {
		return now.floor == v.floor
	}
	// It had expired by the first view: an expired record may be cleaned away
	// in between, which is no change. Had there been another since, it would
	// have left a higher floor.
	if now.at == 0 {
		return now.floor <= v.Version+1
	}
	return v.at != 0 && now.Version == v.Version
}
