package store

import (
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
	off   int // where it lies in the run
	taken bool
	pr    index.Probe
}

// listRun lists the next entries that are to be taken and lie together, and returns the rest. It asks for their
// buckets.
func (w *ImportWorker) listRun(entries []byte) (rest []byte) {
	run := w.run
	run.n, run.bytes = 0, nil
	most := min(runBytes, w.ss.st.log.MaxEntry()/4)
	seen, at := int64(0), 0
	for run.n < runEntries && at < len(entries) {
		if entries[at] == 0 {
			entries = entries[:at] // The segment ends here.
			break
		}
		p := record.PtrOf(entries[at:])
		n := p.Length()
		if run.n > 0 && at+n > most {
			break
		}
		it := &run.items[run.n]
		wanted := w.wants(p, &it.importItem)
		seen++
		if wanted {
			it.off = at
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
			w.ahead.slow = append(w.ahead.slow, run.items[i].importItem)
		}
		return
	}
	copy(room, run.bytes)
	for i := range run.n {
		it := &run.items[i]
		a := record.MakeAddress(at.Slot(), at.Offset()+uint32(it.off))
		if it.taken = w.place(it, a); it.taken {
			run.tally.add(w, it)
		}
	}
	if run.tally.entries == 0 {
		h.Undo(len(run.bytes))
		return
	}
	for i := range run.n {
		if it := &run.items[i]; !it.taken {
			n := it.p.Length()
			record.EncodeVoid(room[it.off:], n)
			h.Died(record.MakeAddress(at.Slot(), at.Offset()+uint32(it.off)), uint32(n))
		}
	}
	h.Keep(len(run.bytes))
	run.tally.flush(w)
}

// place points the index at an entry of a run, if there is nothing of its key. What needs another look, after a wait
// perhaps, is left to slowly.
func (w *ImportWorker) place(it *runItem, a record.Address) bool {
	w.ss.ix.Start(&it.pr)
	old, st := w.ss.match(&it.key, &it.pr, reading) // It does not wait, as find would: the head is ours.
	switch {
	case st == OK && versionOf(old) >= it.p.Version():
		return false
	case st != NotFound:
	case w.ss.st.arriving.dead(&it.key, it.p.Version()): // After the look, before the insertion: see Arrival.
		return false
	case w.ss.ix.TryInsert(&it.pr, a) == index.Inserted:
		return true
	}
	w.ahead.slow = append(w.ahead.slow, it.importItem)
	return false
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
	c.bytes += int64(it.p.Length())
	c.version = max(c.version, it.p.Version())
	if c.in != it.key.in {
		c.count(w)
		c.in = it.key.in
	}
	v := worthOf(it.p)
	c.worth = worth{c.worth.keys + v.keys, c.worth.expires + v.expires, c.worth.bytes + v.bytes}
	if it.p.Type() == record.TypeCompletion {
		w.ss.st.clients.noteForeign(it.p.ExpireAt())
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
