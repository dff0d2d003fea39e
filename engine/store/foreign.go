package store

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// foreign has a note of each result in the index that this process did not write: of other logs, which it imported, and of a
// former life, which it replayed. Clients' receipts tell of its own. So who gives ranges away knows which results lie there,
// and reads those and nothing else.
//
// None is missed. A result gets into the index in four ways, and each leaves word before its place can be given away:
//
//	written        a receipt, before it is committed                 Session.Complete
//	imported       a note, before Import returns; a place is         ImportWorker.account, runTally.add
//	               served, and can be given away, after that
//	replayed       a note, before the store is open                  replay.segment
//	in a snapshot  a note, before the store is open, unless the      loader.noteResults, loader.countUnknown
//	               time of all in its segment is over
//
// Nothing else takes a note away than the time at which the result itself goes: not that its place leaves, and not that it is
// relocated, for that changes neither its key nor its time. So there may be notes of results that are gone, or two of one.
//
// A note takes 32 bytes, beside the hundred or so of the result. Those of a client that confirms nothing, or of a process that died and
// forgot what was confirmed, are as many as were run in KeepResults: of 10,000 operations a second 1.8 million, 58 MB, for three
// minutes. There are mostForeign at most, 128 MiB; of more nothing is noted but until when, and the index is gone through.
//
// They lie in pages that never change below their ends, so a reader needs the lock only to list them. A page goes
// as a whole, when the last of its results has.
type foreign struct {
	untold atomic.Int64 // Unix milliseconds; until then there may be results without a note

	mu    sync.Mutex
	pages []foreignPage
}

type foreignPage struct {
	until int64 // the latest of its results
	notes []foreignResult
}

// foreignResult is the note of one.
type foreignResult struct {
	keptResult
	until int64 // Unix milliseconds; it goes then
}

const (
	pageForeign = 1024
	mostForeign = 4096 * pageForeign
)

// note notes a result.
func (f *foreign) note(one foreignResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := len(f.pages) - 1
	if last < 0 || len(f.pages[last].notes) == pageForeign {
		if len(f.pages) == mostForeign/pageForeign {
			f.noteUntold(one.until)
			return
		}
		f.pages = append(f.pages, foreignPage{notes: make([]foreignResult, 0, pageForeign)})
		last++
	}
	page := &f.pages[last]
	page.notes = append(page.notes, one)
	page.until = max(page.until, one.until)
}

// noteUntold says that until some time there may be results without a note.
func (f *foreign) noteUntold(until int64) {
	for old := f.untold.Load(); old < until; old = f.untold.Load() {
		if f.untold.CompareAndSwap(old, until) {
			return
		}
	}
}

// list gives all pages as they are now.
func (f *foreign) list() []foreignPage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pages)
}

// sweep drops pages whose time is over.
func (f *foreign) sweep(now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages = slices.DeleteFunc(f.pages, func(p foreignPage) bool { return p.until <= now })
	if len(f.pages) == 0 {
		f.pages = nil
	}
}

// noteForeign notes an entry that got into the index, if it is a result and its time is not over.
func (st *Store) noteForeign(p record.Ptr, now int64) {
	if key := p.Key(); p.Type() == record.TypeCompletion && len(key) == completionKeyBytes && p.ExpireAt() > now {
		st.clients.foreign.note(foreignResult{keptResult{idOf(key), objectOf(key)}, p.ExpireAt()})
	}
}

// keptForeign gives those of a page on keys in some ranges. Results whose clients have the answers are left out: this
// process drops its own of them at once.
func (cs *clients) keptForeign(p foreignPage, ranges []Range, now int64) (all []keptResult) {
	for _, one := range p.notes {
		if one.until > now && anyHas(ranges, one.place) && !cs.isAnswered(one.id) {
			all = append(all, one.keptResult)
		}
	}
	return all
}
