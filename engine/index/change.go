package index

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/invariant"
)

// Result of an insertion.
type Result uint8

const (
	Inserted Result = iota
	// Retry: something else happened in the bucket. Seek, compare, try again.
	Retry
	// Full: the operating system has no memory for the index to grow.
	Full
	// Crowded: the index must grow first. Only TryInsert says so.
	Crowded
)

// Update turns the word that Next stopped at into address a. False: it has
// changed, or it is locked, or its sub-table was replaced; the caller seeks again.
func (ix *Index) Update(pr *Probe, a record.Address) bool {
	if pr.Word&(lockedBit|frozenBit) == 0 && pr.swap(wordOf(pr.place, a)) {
		return true
	}
	pr.settle()
	return false
}

// Remove takes out the entry that Next stopped at; false as in Update.
func (ix *Index) Remove(pr *Probe) bool {
	if pr.Word&(lockedBit|frozenBit) == 0 && pr.swap(0) {
		ix.counts.add(pr, -1)
		return true
	}
	pr.settle()
	return false
}

// settle makes it worth while to seek again: if a split holds the word, it
// waits for the split's end.
func (pr *Probe) settle() {
	if atomic.LoadUint64(pr.slot())&frozenBit != 0 {
		pr.table.awaitMove()
	}
}

// Insert adds an entry for the place of pr, whose candidates the caller has seen
// to the end. It does so only if nothing was inserted into the bucket since.
// The address is not 0. The probe is used up: to change the entry, seek it.
func (ix *Index) Insert(pr *Probe, a record.Address) Result {
	return ix.insert(pr, wordOf(pr.place, a))
}

// InsertLocked is Insert with the entry locked from the start. Address 0 makes a
// placeholder, which keeps others from inserting the key. The probe then
// stands at the entry, as after Lock.
func (ix *Index) InsertLocked(pr *Probe, a record.Address) Result {
	return ix.insert(pr, wordOf(pr.place, a)|lockedBit)
}

// TryInsert is Insert that does not grow the index: where it had to it says Crowded, and the caller has Grow called. It
// is for goroutines that may be off their core for long, for others would wait for them.
func (ix *Index) TryInsert(pr *Probe, a record.Address) Result {
	return ix.tryInsert(pr, wordOf(pr.place, a))
}

// Grow makes room where a TryInsert found none; false if there is no memory. The caller seeks again.
func (ix *Index) Grow(pr *Probe) bool { return ix.grow(pr.table) }

func (ix *Index) insert(pr *Probe, word uint64) Result {
	r := ix.tryInsert(pr, word)
	if r != Crowded {
		return r
	}
	if !ix.grow(pr.table) {
		return Full
	}
	return Retry
}

func (ix *Index) tryInsert(pr *Probe, word uint64) Result {
	if !ix.Hold(pr) {
		return Retry
	}
	ok := pr.put(word)
	pr.primary.storeMeta(pr.meta)
	if !ok {
		return Crowded
	}
	ix.counts.add(pr, 1)
	return Inserted
}

// Hold begins insertions through several probes that stand in one bucket as pr does, from one StartWith on: nothing was inserted there
// since, and until Release nobody else inserts. Others spin meanwhile, so what lies in between is short. False: something else
// happened in the bucket; seek again.
func (ix *Index) Hold(pr *Probe) bool {
	m := pr.meta
	if m&metaLocked != 0 || !atomic.CompareAndSwapUint32(pr.primary.meta(), m, m|metaLocked) {
		pr.awaitUnlock()
		return false
	}
	pr.at, pr.index = pr.primary, 0
	return true
}

// InsertHeld is TryInsert through a probe of the bucket that held holds, which may be itself; false if the index must grow first. It
// looks for room from where the last one found some.
func (ix *Index) InsertHeld(held, pr *Probe, a record.Address) bool {
	pr.meta, pr.at, pr.index = held.meta, held.at, held.index
	ok := pr.put(wordOf(pr.place, a))
	held.meta, held.at, held.index = pr.meta, pr.at, pr.index
	return ok
}

// Release ends what Hold began, after so many insertions.
func (ix *Index) Release(held *Probe, inserted int) {
	held.primary.storeMeta(held.meta)
	if inserted > 0 {
		ix.counts.add(held, int64(inserted))
	}
}

// put finds an empty word in the chain that the caller has locked, from the probe's bucket and index on, and fills it; false if there is no room.
// The meta of the probe is then what the primary bucket's will be when it is unlocked.
func (pr *Probe) put(word uint64) bool {
	for {
		if invariant.Enabled {
			a := addressOf(word) // 0: of a key that is locked and has no record.
			invariant.Check(a == 0 || !pr.at.holds(pr.place, a), "the record at %v stands in the index already", a)
		}
		if i := pr.at.empty(int(pr.index)); i >= 0 {
			pr.fill(i, word)
			pr.inserted(pr.meta >> linkShift & linkMask)
			return true
		}
		next := pr.following()
		if next == 0 {
			break
		}
		pr.at, pr.index = next, 0
	}
	last, first := pr.at, pr.at == pr.primary
	n := pr.table.extend(int(pr.place&bucketMask), first, pr.table.header().limit)
	if n == 0 {
		return false
	}
	// Filled before it is linked, so that who follows the link finds the entry.
	pr.at = pr.table.overflow(n)
	pr.fill(0, word)
	if first {
		pr.inserted(n)
		return true
	}
	last.storeMeta(n)
	pr.inserted(pr.meta >> linkShift & linkMask)
	return true
}

// inserted counts an insertion in the meta of the primary bucket, whose link is given.
func (pr *Probe) inserted(link uint32) { pr.meta = link<<linkShift | (pr.meta+1)&sequenceMask }

func (pr *Probe) fill(i int, word uint64) {
	pr.at.fill(i, pr.place, word)
	pr.Word, pr.index = word, uint8(i)
}

// awaitUnlock returns when the primary bucket is not locked, or never will be
// again because the sub-table was replaced.
func (pr *Probe) awaitUnlock() {
	for round := 0; pr.primary.loadMeta()&metaLocked != 0; round++ {
		if pr.table.header().state.Load() == moved {
			return
		}
		relax(round)
	}
}
