package index

import "github.com/ostrodb/ostro/engine/record"

// Lock takes the entry that Next stopped at for the caller: until the caller
// unlocks it, Update, Remove and Lock of others fail. False as in Update.
// Readers see the old address and may see that it is locked.
func (ix *Index) Lock(pr *Probe) bool {
	if pr.Word&(lockedBit|frozenBit) == 0 && pr.swap(pr.Word|lockedBit) {
		return true
	}
	pr.settle()
	return false
}

// UpdateLocked gives the entry that the caller has locked an address, and
// unlocks it unless keepLocked.
func (ix *Index) UpdateLocked(pr *Probe, a record.Address, keepLocked bool) {
	word := wordOf(pr.place, a)
	if keepLocked {
		word |= lockedBit
	}
	ix.swapLocked(pr, word)
}

// Unlock gives the caller's entry free as it is. A placeholder is removed.
func (ix *Index) Unlock(pr *Probe) {
	if pr.Address() == 0 {
		ix.RemoveLocked(pr)
		return
	}
	ix.swapLocked(pr, pr.Word&^(lockedBit|frozenBit))
}

// RemoveLocked takes out the entry that the caller has locked.
func (ix *Index) RemoveLocked(pr *Probe) {
	ix.swapLocked(pr, 0)
	ix.counts.add(pr, -1)
}

// swapLocked changes a word that only the caller may change. A split may take it
// elsewhere meanwhile; then the caller's word is there.
func (ix *Index) swapLocked(pr *Probe, word uint64) {
	for !pr.swap(word) {
		pr.table.awaitMove()
		ix.findLocked(pr)
	}
}

// findLocked goes to the caller's locked entry in the sub-table that has it now.
// Several placeholders may have equal known bits only by the callers' mistake,
// and even then they are interchangeable.
func (ix *Index) findLocked(pr *Probe) {
	mine, top := pr.Word&^frozenBit, uint64(pr.place>>32)
	ix.Seek(pr.place, pr)
	for pr.Next() {
		word, t := pr.at.entry(int(pr.index))
		if word&^frozenBit == mine && t == top {
			pr.Word = mine
			return
		}
	}
	panic("index: a locked entry is gone; was it locked by the caller?")
}
