package index

import (
	"fmt"

	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/record"
)

// dumpBuckets is how many buckets a dump reads in one guard.
const dumpBuckets = 256

type dumped struct {
	place   record.Place
	address record.Address
}

// Dump calls f for every entry while others go on working: an entry that changes
// meanwhile comes with its address from before or after, and one that is present
// all the time comes exactly once. The place has its known bits only, which is
// all that Load needs. Each bucket is read at one moment, so a key that is removed
// and inserted again does not come twice either. The caller is not
// inside a guard; f is called outside of one and may take its time.
func (ix *Index) Dump(f func(known record.Place, a record.Address) error) error {
	g, err := ix.epoch.Register()
	if err != nil {
		return fmt.Errorf("index: dump: %w", err)
	}
	defer g.Unregister()
	var batch []dumped
	for w, more := (position{}), true; more; {
		batch, more = ix.dumpSome(g, &w, batch[:0])
		for _, e := range batch {
			if err := f(e.place, e.address); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ix *Index) dumpSome(g *epoch.Guard, w *position, batch []dumped) (_ []dumped, more bool) {
	g.Enter()
	defer g.Leave()
	for range dumpBuckets {
		t := ix.table(w)
		entries, ok := t.snapshot(int(w.bucket), batch)
		if !ok {
			continue // Replaced: the walk finds its successors.
		}
		batch = entries
		if !w.advance(t) {
			return batch, false
		}
	}
	return batch, true
}

// snapshot appends the entries of a bucket as they were between two insertions;
// not ok if the sub-table was replaced.
func (t table) snapshot(b int, batch []dumped) (_ []dumped, ok bool) {
	primary := t.bucketAt(b)
	for round := 0; ; round++ {
		m := primary.loadMeta()
		if m&metaLocked == 0 {
			if entries := t.collect(b, batch); primary.loadMeta() == m {
				return entries, true
			}
		}
		if t.header().state.Load() == moved {
			return batch, false
		}
		relax(round)
	}
}

func (t table) collect(b int, batch []dumped) []dumped {
	for at := range t.chain(b) {
		for i := range bucketWords {
			if word, top := at.entry(i); addressOf(word) != 0 {
				batch = append(batch, dumped{record.Place(top<<32 | uint64(b)), addressOf(word)})
			}
		}
	}
	return batch
}

// Load adds an entry that Dump gave, without looking for its key: each key is
// loaded once, into an index that has it not. False: there is no memory.
func (ix *Index) Load(known record.Place, a record.Address) bool {
	var pr Probe
	for {
		ix.Seek(known, &pr)
		switch ix.Insert(&pr, a) {
		case Inserted:
			return true
		case Full:
			return false
		}
	}
}
