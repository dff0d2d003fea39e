package store

import (
	"encoding/binary"
	"errors"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// What pulls bring is nearly always new, and all of it is taken. So a live worker takes entries in runs,
// as they lie one after the other: a run gets into the log with one copy, and its entries into the index
// one by one. An entry that cannot stay where it is becomes a void before the run is kept: a key that was removed here
// is not in the log again, behind its tombstone.

const (
	runEntries = 64       // of one run at the most: their cache misses overlap
	runBytes   = 64 << 10 // likewise, if it has more than one; a quarter of what a segment takes, if that is less
)

// importRun is a run.
type importRun struct {
	n     int
	bytes []byte
	items [runEntries]runItem
	tally runTally
}

type runItem struct {
	importItem
	off   int  // where it lies in the run
	bytes int  // of the entry
	plain bool // it is
	taken bool
	pr    index.Probe
}

// nextKnown is what is known of the place of the next entry; 0 if nothing is. The first of each run is looked at: a wrong one would hide
// its record from all who seek it.
func (w *ImportWorker) nextKnown(p record.Ptr) record.Place {
	if len(w.known) < slotKnown {
		return 0
	}
	known := record.Place(binary.LittleEndian.Uint64(w.known))
	w.known = w.known[slotKnown:]
	if w.run.n == 0 && known != 0 && (!isRecord(p) || known != index.Known(record.PlaceOf(p.Table(), p.Key()))) {
		w.fail(errWrongPlace)
		return 0
	}
	return known
}

// slotKnown is how many bytes what is known of a place has.
const slotKnown = 8

// errMalformedEntry says that bytes are not entries that lie one after the other.
var errMalformedEntry = errors.New("what came from another node is not made of whole entries: that node must be checked")

var errWrongPlace = errors.New("the source of a migration told a wrong place of a record: its index must be checked")

// listRun lists the next entries that are to be taken and lie together, and returns the rest. It asks for their
// buckets.
func (w *ImportWorker) listRun(entries []byte) (rest []byte) {
	run := w.run
	run.n, run.bytes = 0, nil
	most := min(runBytes, w.ss.st.log.MaxEntry()/4)
	seen, at := int64(0), 0
	for run.n < runEntries && at < len(entries) {
		if n := w.listPlain(entries[at:], at, most); n > 0 {
			seen++
			at += n
			continue
		}
		if !record.Fits(entries[at:]) {
			w.fail(errMalformedEntry)
			entries = entries[:at]
			break
		}
		p := record.PtrOf(entries[at:])
		n := p.Length()
		if run.n > 0 && at+n > most {
			break
		}
		it := &run.items[run.n]
		wanted := w.wants(p, w.nextKnown(p), &it.importItem)
		seen++
		if wanted {
			it.off, it.bytes, it.plain = at, n, false
			w.ss.ix.SeekPrefetch(it.key.Place, &it.pr)
			run.n++
		} else if run.n == 0 {
			entries, at = entries[n:], 0
			continue
		} else {
			run.bytes, rest = entries[:at], entries[at+n:]
			w.stats.entries.Add(seen)
			return rest
		}
		at += n
	}
	run.bytes = entries[:at]
	w.stats.entries.Add(seen)
	return entries[at:]
}

// listPlain lists an entry that follows another one in a run, and is as nearly all are: plain, of that one's table, wanted, and at a place that is
// known. It returns how long the entry is, and 0 if it is any other, or one too much for the run.
func (w *ImportWorker) listPlain(entries []byte, at, most int) int {
	run := w.run
	if run.n == 0 || len(w.known) < slotKnown {
		return 0
	}
	last := &run.items[run.n-1]
	n := record.FitsPlain(entries, last.key.Table)
	known := record.Place(binary.LittleEndian.Uint64(w.known))
	if n == 0 || at+n > most || known == 0 || Internal(last.key.Table) || !w.owns(known) {
		return 0
	}
	w.known = w.known[slotKnown:]
	it := &run.items[run.n]
	it.p = record.PtrOf(entries)
	k := &it.key // Part by part: a whole one is made elsewhere and copied, and that waits for the parts to be there.
	k.Place, k.Table, k.Bytes, k.in = known, last.key.Table, it.p.Key(), last.key.in
	it.off, it.bytes, it.plain = at, n, true
	w.ss.ix.SeekNear(known, &it.pr, &last.pr)
	run.n++
	return n
}

// takeRun takes what is listed, as far as nothing has to be waited for.
func (w *ImportWorker) takeRun() {
	run, h := w.run, w.ss.head
	if run.n == 0 {
		return
	}
	if run.n == 1 && len(run.bytes) > w.ss.st.log.MaxEntry() {
		w.fail(errForeignSegments)
		return
	}
	h.Lock()
	defer h.Unlock()
	at, room, err := h.Reserve(len(run.bytes))
	if err != nil {
		if w.ss.fail(err) != Cold {
			w.fail(err)
		}
		for i := range run.n {
			w.later(&run.items[i])
		}
		return
	}
	copy(room, run.bytes)
	for i := 0; i < run.n; {
		i += w.placeTogether(run.items[i:run.n], at)
	}
	for i := range run.n {
		if it := &run.items[i]; it.taken {
			run.tally.add(w, it)
		}
	}
	if run.tally.entries == 0 {
		h.Undo(len(run.bytes))
		return
	}
	if run.tally.entries < int64(run.n) {
		w.voidRest(at, room)
	}
	h.Keep(len(run.bytes))
	run.tally.flush(w)
}

// voidRest makes voids of the entries of a run that were not taken.
func (w *ImportWorker) voidRest(at record.Address, room []byte) {
	for i := range w.run.n {
		if it := &w.run.items[i]; !it.taken {
			record.EncodeVoid(room[it.off:], it.bytes)
			w.ss.head.Died(record.MakeAddress(at.Slot(), at.Offset()+uint32(it.off)), uint32(it.bytes))
		}
	}
}

// placeTogether points the index at the first entries of some that are of one bucket, as far as there is nothing of their keys, and returns
// how many it was: a source gives its buckets one after the other, and here they are the same. at is where the run begins. What needs
// another look, after a wait perhaps, is left to slowly.
func (w *ImportWorker) placeTogether(items []runItem, at record.Address) (n int) {
	first := &items[0]
	w.ss.ix.Start(&first.pr)
	absent := 0
	for n = 0; n < len(items); n++ {
		it := &items[n]
		if n > 0 && !w.ss.ix.StartWith(&it.pr, &first.pr) {
			break
		}
		if it.taken = w.absent(it) && !w.again(items[:n], it); it.taken {
			absent++
		}
	}
	if absent > 0 {
		w.insertTogether(items[:n], at)
	}
	return n
}

// absent tells whether there is nothing of an entry's key, and nothing was.
func (w *ImportWorker) absent(it *runItem) bool {
	return (it.pr.None() || !it.pr.Next() || w.unseen(it)) &&
		!w.live.dead(&it.key, it.p.Version()) // After the look, before the insertion: see Arrival.
}

// unseen tells whether a look at the records finds none of an entry's key. What is not newer than that is done with.
func (w *ImportWorker) unseen(it *runItem) bool {
	it.pr.Again()
	old, st := w.ss.match(&it.key, &it.pr, reading) // It does not wait, as find would: the head is ours.
	switch {
	case st == OK && versionOf(old) >= it.p.Version():
		return false
	case st != NotFound:
		w.later(it)
		return false
	}
	return true
}

// again tells whether an entry may be of a key that one before it in its bucket has: then it is not known yet whether that will be there.
func (w *ImportWorker) again(before []runItem, it *runItem) bool {
	for i := range before {
		if before[i].taken && index.Known(before[i].key.Place) == index.Known(it.key.Place) {
			w.later(it)
			return true
		}
	}
	return false
}

// later leaves an entry to slowly, which needs all of its place.
func (w *ImportWorker) later(it *runItem) {
	if !Internal(it.key.Table) {
		it.key.Place = record.PlaceOf(it.key.Table, it.key.Bytes)
	}
	w.ahead.slow = append(w.ahead.slow, it.importItem)
}

// insertTogether inserts those of one bucket that are absent.
func (w *ImportWorker) insertTogether(items []runItem, at record.Address) {
	held, inserted := &items[0].pr, 0
	holds := w.ss.ix.Hold(held)
	for i := range items {
		it := &items[i]
		if !it.taken {
			continue
		}
		a := record.MakeAddress(at.Slot(), at.Offset()+uint32(it.off))
		if it.taken = holds && w.ss.ix.InsertHeld(held, &it.pr, a); it.taken {
			inserted++
		} else {
			w.later(it)
		}
	}
	if holds {
		w.ss.ix.Release(held, inserted)
	}
}

// runTally is what the entries that were taken count together, so that many are counted at once.
type runTally struct {
	entries, bytes int64
	version        uint64 // the highest
	in             *table
	worth          worth // in it
}

func (c *runTally) add(w *ImportWorker, it *runItem) {
	c.entries++
	c.bytes += int64(it.bytes)
	c.version = max(c.version, it.p.Version())
	if c.in != it.key.in {
		c.count(w)
		c.in = it.key.in
	}
	if it.plain {
		c.worth.keys++
		c.worth.bytes += it.bytes
		return
	}
	v := worthOf(it.p)
	c.worth = worth{c.worth.keys + v.keys, c.worth.expires + v.expires, c.worth.bytes + v.bytes}
	if it.p.Type() == record.TypeCompletion {
		w.ss.st.noteForeign(it.p, w.ss.now)
	}
}

func (c *runTally) count(w *ImportWorker) {
	if c.in != nil {
		c.in.count(w.ss.n, c.worth)
	}
	c.worth = worth{}
}

// flush counts what was added.
func (c *runTally) flush(w *ImportWorker) {
	c.count(w)
	w.ss.st.raiseCeiling(c.version)
	w.stats.taken.Add(c.entries)
	w.stats.bytes.Add(c.bytes)
	*c = runTally{}
}
