package store

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// importSteps is how many batches of entries are taken inside one guard, and end
// up in one batch of the log.
const importSteps = 8

// importItem is an entry to be taken.
type importItem struct {
	key Key
	p   record.Ptr
}

// importBatch is what a worker is at.
type importBatch struct {
	n     int
	items [batchKeys]importItem
	slow  []importItem // what could not be done without waiting
	err   error
}

// aligned gives b, or a copy of it that lies as entries must.
func aligned(b []byte) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0 {
		return b
	}
	return slices.Clone(b)
}

// some takes a few entries and returns the rest.
func (w *ImportWorker) some(entries []byte) []byte {
	for range importSteps {
		if w.live != nil {
			entries = w.listRun(entries)
			w.takeRun()
		} else {
			entries = w.list(entries)
			w.approach()
			w.takeAll()
		}
		if len(entries) == 0 || w.ahead.err != nil {
			break
		}
	}
	return entries
}

// list lists the next entries that are to be taken, and returns the rest. It asks
// for their buckets.
func (w *ImportWorker) list(entries []byte) []byte {
	w.ahead.n = 0
	seen := int64(0)
	for w.ahead.n < batchKeys && len(entries) > 0 {
		if entries[0] == 0 {
			entries = nil // The segment ends here.
			break
		}
		if !record.Fits(entries) { // They may have come from a living node.
			w.fail(errMalformedEntry)
			entries = nil
			break
		}
		p := record.PtrOf(entries)
		entries = entries[p.Length():]
		seen++
		it := &w.ahead.items[w.ahead.n]
		if w.wants(p, 0, it) {
			w.ss.ix.Approach(it.key.Place)
			w.ahead.n++
		}
	}
	w.stats.entries.Add(seen)
	return entries
}

// wants tells whether an entry is to be taken now, and leaves it in it. What is known of its place may be 0.
//
// What has expired on its way from a living source is taken like anything else. The source may forget it as soon as it is
// here, and an older version may come back to it with its next start: then this log must have the expired one, or the
// tombstone by which it went.
func (w *ImportWorker) wants(p record.Ptr, known record.Place, it *importItem) bool {
	switch p.Type() {
	case record.TypePut:
		if p.Table() == chunkTable {
			return w.wantsChunk(p, it)
		}
	case record.TypeCompletion:
		return w.wantsCompletion(p, it)
	case record.TypeTombstone:
		if w.live != nil {
			return false // Of a key the source has one record or none.
		}
	default:
		return false
	}
	if p.Table() == completionTable {
		return false // Results of operations have a type of their own, and no tombstones.
	}
	t := w.lastTable.find(w.ss.tables, p.Table())
	if t == nil {
		w.lacks(p.Table(), p.Key())
		return false
	}
	if known == 0 {
		known = record.PlaceOf(p.Table(), p.Key())
	}
	it.p, it.key = p, Key{Place: known, Table: p.Table(), Bytes: p.Key(), in: t}
	switch {
	case !w.owns(it.key.Place):
		return false
	case w.live == nil && w.ss.expired(p) && p.Type() == record.TypePut:
		w.bury(it) // What is older than it must not come back.
		return false
	case p.Chunked():
		w.fronts = append(w.fronts, slices.Clone(p.Bytes()))
		return false
	}
	return true
}

// lacks fails the import if an entry that is to be taken is of a table that this store does not have. Outside of a cluster such a
// table is dead. In a cluster none ever is: databases keep their tables, and private ones that were not heard of are opened. So
// the entry is of a database that other nodes have and this one does not, and whoever gives it away is to keep it.
func (w *ImportWorker) lacks(t record.TableID, key []byte) {
	if w.ss.tables.shared && w.owns(record.PlaceOf(t, key)) {
		w.fail(fmt.Errorf("it has records of database %d, and this node has databases 0 to %d: set databases to %d or more, and start this node again", t, len(w.ss.tables.byDB)-1, uint64(t)+1))
	}
}

// wantsChunk notes a piece of a large value.
func (w *ImportWorker) wantsChunk(p record.Ptr, it *importItem) bool {
	key, t, _, ok := chunkBody(p.Value())
	of, named := chunkOf(p.Key())
	if !ok || !named || p.Type() != record.TypePut {
		return false
	}
	if w.ss.tables.byID(t) == nil {
		w.lacks(t, key)
		return false
	}
	place := record.PlaceOf(t, key)
	if !w.owns(place) {
		return false
	}
	if w.live != nil {
		w.live.large.note(of, t, key, chunkNumber(p.Key()))
		w.pieces = append(w.pieces, of)
	} else {
		w.values.note(of, t, key, chunkNumber(p.Key()))
	}
	it.p, it.key = p, Key{Place: chunkPlace(place, p.Key()), Table: chunkTable, Bytes: p.Key(), in: &noTable}
	return true
}

// wantsCompletion leaves out what is over: it has no tombstone, and needs none.
func (w *ImportWorker) wantsCompletion(p record.Ptr, it *importItem) bool {
	if p.Table() != completionTable || len(p.Key()) != completionKeyBytes || w.ss.expired(p) || !w.owns(objectOf(p.Key())) {
		return false
	}
	it.p, it.key = p, Key{Place: completionPlace(p.Key()), Table: completionTable, Bytes: p.Key(), in: w.ss.tables.completions}
	return true
}

// bury remembers that all of a key below an entry's version is dead.
func (w *ImportWorker) bury(it *importItem) {
	ver := it.p.Version()
	w.ss.st.floors.raise(it.key.Place, ver)
	w.ss.st.raiseCeiling(ver)
	w.tombs.add(it.key.Table, ver, it.key.Bytes)
	w.stats.tombstones.Add(1)
}

// approach asks for the records that the index has of what is listed.
func (w *ImportWorker) approach() {
	for i := range w.ahead.n {
		if a := w.ss.ix.First(w.ahead.items[i].key.Place); a != 0 {
			if p := w.ss.log.See(a).Entry(); !p.IsNil() {
				w.ss.fetchLines(p)
			}
		}
	}
}

// takeAll takes what is listed, as far as nothing has to be waited for.
func (w *ImportWorker) takeAll() {
	if w.ahead.n == 0 {
		return
	}
	h := w.ss.head
	h.Lock()
	defer h.Unlock()
	for i := range w.ahead.n {
		it := &w.ahead.items[i]
		var pr index.Probe
		w.ss.ix.Seek(it.key.Place, &pr)
		old, st := w.ss.match(&it.key, &pr, reading) // It does not wait, as find would: the head is ours.
		if done := w.take(it, &pr, old, st); !done {
			w.ahead.slow = append(w.ahead.slow, *it)
		}
	}
}

// take takes an entry after match has told what is there. The caller holds the
// head. Not done asks for another look, after a wait if the session wants a fetch.
func (w *ImportWorker) take(it *importItem, pr *index.Probe, old record.Ptr, st Status) (done bool) {
	if it.p.Type() == record.TypeTombstone {
		if st != OK || versionOf(old) < it.p.Version() {
			w.bury(it)
		}
		return true
	}
	switch {
	case st == Cold || st == Conflict:
		return false
	case st == OK && versionOf(old) >= it.p.Version():
		return true
	case st == OK && old.Chunked():
		return false // Its pieces go with it, which is not for here.
	}
	return w.install(it, pr, old)
}

// install appends a copy of an entry and makes it the index's. The caller holds
// the head.
func (w *ImportWorker) install(it *importItem, pr *index.Probe, old record.Ptr) (done bool) {
	ss, n := w.ss, it.p.Length()
	if old.IsNil() && ss.st.arriving.dead(&it.key, it.p.Version()) {
		return true // It was removed here, or before. If there is one, it has come since, or the removal failed.
	}
	if most := ss.st.log.MaxEntry(); n > most {
		w.fail(errForeignSegments)
		return true
	}
	at, ver := pr.Address(), versionOf(old)
	lock := !old.IsNil() && !ss.st.logged && !ss.st.log.Frozen(at)
	if lock && !old.LockVersion(ver) {
		return false
	}
	a, room, err := ss.head.Reserve(n)
	if err == nil {
		copy(room, it.p.Bytes())
		if done, err = w.show(pr, old, a); done {
			ss.head.Keep(n)
			w.account(it, old, at)
			return true
		}
		ss.head.Undo(n)
	}
	if lock {
		old.UnlockVersion(ver)
	}
	if err != nil && ss.fail(err) != Cold {
		w.fail(err)
		return true
	}
	return false
}

// show points the index at a.
func (w *ImportWorker) show(pr *index.Probe, old record.Ptr, a record.Address) (bool, error) {
	if !old.IsNil() {
		return w.ss.ix.Update(pr, a), nil
	}
	switch w.insert(pr, a) {
	case index.Inserted:
		return true, nil
	case index.Full:
		return false, ErrIndexFull
	}
	return false, nil
}

// insert inserts. A live worker may be quiet, and clients would wait for the splits that it makes.
func (w *ImportWorker) insert(pr *index.Probe, a record.Address) index.Result {
	if w.live == nil {
		return w.ss.ix.Insert(pr, a)
	}
	r := w.ss.ix.TryInsert(pr, a)
	if r == index.Crowded {
		r = w.grow(*pr)
	}
	return r
}

// grow has the index grow where a probe found it crowded.
func (w *ImportWorker) grow(pr index.Probe) (r index.Result) {
	background.Aloud(func() {
		if r = index.Retry; !w.ss.ix.Grow(&pr) {
			r = index.Full
		}
	})
	return r
}

// account counts an entry that was taken in place of old, which was at at.
func (w *ImportWorker) account(it *importItem, old record.Ptr, at record.Address) {
	if !old.IsNil() {
		w.ss.head.Died(at, uint32(old.Length()))
	}
	it.key.in.count(w.ss.n, worthOf(it.p).minus(worthOf(old)))
	w.ss.st.raiseCeiling(it.p.Version())
	if it.p.Type() == record.TypeCompletion {
		w.ss.st.noteForeign(it.p, w.ss.now)
	}
	w.stats.taken.Add(1)
	w.stats.bytes.Add(int64(it.p.Length()))
}

func (w *ImportWorker) fail(err error) {
	if w.ahead.err == nil {
		w.ahead.err = err
	}
}

// slowly takes what could not be taken at once. It is called outside of a guard.
func (w *ImportWorker) slowly(ctx context.Context) error {
	for len(w.ahead.slow) > 0 && w.ahead.err == nil {
		if err := w.wait(ctx); err != nil {
			return err
		}
		w.ss.Begin()
		left := w.ahead.slow[:0]
		for i := range w.ahead.slow {
			if it := w.ahead.slow[i]; !w.patiently(&it) {
				left = append(left, it)
			}
		}
		w.ahead.slow = left
		w.ss.Seal()
		w.ss.End()
	}
	err := w.ahead.err
	w.ahead.err, w.ahead.slow = nil, w.ahead.slow[:0]
	return err
}

// wait waits for what the session wants, if it wants something.
func (w *ImportWorker) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(w.ss.cold) > 0 || w.ss.noRoom {
		return w.ss.Fetch(ctx)
	}
	return nil
}

// patiently takes an entry, and looks again as often as others are faster; not
// done if it has to wait for a fetch.
func (w *ImportWorker) patiently(it *importItem) (done bool) {
	for round := 0; ; round++ {
		var pr index.Probe
		old, st := w.ss.find(&it.key, &pr)
		if st == Cold {
			return false
		}
		if st == OK && versionOf(old) >= it.p.Version() {
			return true
		}
		w.ss.head.Lock()
		done := w.install(it, &pr, old)
		w.ss.head.Unlock()
		if done {
			if w.ahead.err == nil && !old.IsNil() && old.Chunked() {
				w.ss.dropChunks(record.PlaceOf(old.Table(), old.Key()), old.Value())
			}
			return true
		}
		if w.ss.noRoom {
			return false
		}
		yield(round)
	}
}
