package store

import "github.com/ostrodb/ostro/engine/index"

// Who pulls single keys has an operation waiting for each. So none waits for long because another's value is large, or on
// disk: the first key comes in any case, as much of it as there is room for, and of the others those that fit into
// as much again. Who asks for the rest in the same order gets all in the end, each entry once.

// MaxPullKeys is how many keys, or places, one such pull names at the most.
const MaxPullKeys = 64

// Unsent is what a pull of single keys did not give.
type Unsent struct {
	Keys uint64     // a bit for each that was not given, or not as a whole
	Next PullCursor // where the first goes on; zero if all of it was given
}

// Has tells whether the key of this number is to be asked for again.
func (u Unsent) Has(i int) bool { return u.Keys>>i&1 != 0 }

// PullKeys gives what there is of some keys, MaxPullKeys at the most. The first goes on at a cursor: about maxBytes are given, one piece
// of a large value at least. Of the others, as they are in memory and fit into maxBytes more. With Cold nothing was
// given: Fetch, and call it again.
func (ss *Session) PullKeys(keys []ArrivingKey, from PullCursor, maxBytes int, emit func(entry []byte)) (Unsent, Status) {
	g := pullGiver{ss: ss, left: maxBytes, emit: emit}
	return g.inTurn(len(keys), func() (PullCursor, Status) { return g.firstKey(keys, from) }, func(i int) bool { return g.smallKey(&keys[i]) })
}

// inTurn gives the first of n as far as there is room, and of the others, in their order, those of which other says that they were
// given.
func (g *pullGiver) inTurn(n int, first func() (PullCursor, Status), other func(i int) bool) (u Unsent, st Status) {
	if n == 0 {
		return u, OK
	}
	room := g.left
	u.Next, st = first()
	if st != OK && (st != Cold || g.left == room) {
		return u, st
	}
	u.Keys = uint64(b2i(u.Next != PullCursor{}))
	g.left = room
	for i := 1; i < n; i++ {
		if !other(i) {
			u.Keys |= 1 << i
		}
	}
	return u, OK
}

// firstKey gives the first of some keys from a cursor on. If it must be read from disk, so are those of the others that
// probably fit with it.
func (g *pullGiver) firstKey(keys []ArrivingKey, from PullCursor) (PullCursor, Status) {
	room := g.left
	next, st := g.key(&keys[0], from.Piece)
	if st == Cold && g.left == room {
		g.wantOthers(keys[1:])
	}
	if st == OK && next == 0 {
		return PullCursor{}, OK
	}
	return PullCursor{Value: 1, Piece: next}, st
}

// wantOthers has cold records of keys read, too.
func (g *pullGiver) wantOthers(keys []ArrivingKey) {
	most := min(knownPlaces, g.left/max(g.ss.usual, 1))
	for i := range keys {
		if len(g.ss.cold) >= most {
			return
		}
		var pr index.Probe
		g.ss.find(&Key{Place: keys[i].Place, Table: keys[i].Table, Bytes: keys[i].Bytes}, &pr)
	}
}

// smallKey gives a key if it is at hand and fits. One that does not exist is given by that.
func (g *pullGiver) smallKey(k *ArrivingKey) bool {
	var pr index.Probe
	p, st := g.ss.find(&Key{Place: k.Place, Table: k.Table, Bytes: k.Bytes}, &pr)
	switch {
	case st == NotFound || st == OK && g.ss.expired(p):
		return true
	case st != OK || p.Chunked() || p.Length() > g.left:
		return false
	}
	g.give(&pullItem{at: pr.Address(), p: p})
	return true
}
