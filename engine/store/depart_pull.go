package store

import (
	"unsafe"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// PullChanges is PullKeys for who has copied the keys before: of one that is not there, or whose time is over,
// it gives a tombstone. That is above all records of the key that were, and below all that will be.
func (ss *Session) PullChanges(keys []ArrivingKey, from PullCursor, maxBytes int, emit func(entry []byte)) (PullCursor, Status) {
	g := pullGiver{ss: ss, left: maxBytes, emit: emit}
	return g.each(keys, from, g.change)
}

// change gives what a key is now, a large value from some piece on; it returns the piece to go on with, or 0.
func (g *pullGiver) change(k *ArrivingKey, piece uint64) (next uint64, st Status) {
	for round := 0; ; round++ {
		// Before it is looked for: who writes it later is above this.
		floor := g.ss.st.floors.of(k.Place).Load()
		var pr index.Probe
		p, st := g.ss.find(&Key{Place: k.Place, Table: k.Table, Bytes: k.Bytes}, &pr)
		switch {
		case st == NotFound:
			g.bury(k, floor)
			return 0, OK
		case st != OK:
			return piece, st
		case g.ss.expired(p):
			g.bury(k, versionOf(p))
			return 0, OK
		case !p.Chunked():
			g.give(&pullItem{at: pr.Address(), p: p})
			return 0, OK
		}
		next, st, whole := g.changedLarge(&pullItem{at: pr.Address(), p: p}, piece)
		switch {
		case whole || st != OK || next != 0:
			return next, st
		case round == changeRounds:
			g.bury(k, versionOf(p)) // It is damaged, and as good as none.
			return 0, OK
		}
		piece = 0
		yield(round)
	}
}

// changeRounds is how often a large value that lacks pieces is looked at. Nearly always it was replaced or removed
// that moment.
const changeRounds = 1000

// changedLarge gives a large value from some piece on; whole tells that its record was given, too.
func (g *pullGiver) changedLarge(front *pullItem, piece uint64) (next uint64, st Status, whole bool) {
	emit, record := g.emit, unsafe.SliceData(front.p.Bytes())
	g.emit = func(entry []byte) {
		whole = unsafe.SliceData(entry) == record
		emit(entry)
	}
	next, st = g.large(front, piece)
	g.emit = emit
	return next, st, whole
}

// bury gives a tombstone.
func (g *pullGiver) bury(k *ArrivingKey, ver uint64) {
	var h horizon
	b := make([]byte, record.Size(len(k.Bytes), len(h), false))
	n := record.Encode(b, &record.Header{Type: record.TypeTombstone, Table: k.Table, Version: ver}, k.Bytes, h[:], true)
	g.left -= n
	g.emit(b[:n])
}
