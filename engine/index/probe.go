package index

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// Probe is one search: where it is, and what the bucket was when it began. It
// belongs to the caller, usually on its stack or in its session, and is good
// inside one guard. It holds no pointers that the collector follows.
//
// What a probe has seen is not what is: every change through it is a
// compare-and-swap against what it saw.
type Probe struct {
	// Word is what Next stopped at.
	Word uint64

	place   record.Place
	table   table
	primary bucket
	at      bucket  // the bucket of the chain that the search is in
	meta    uint32  // of the primary bucket, before any word was read
	index   uint8   // of Word in at
	matches matches // words of at that have the tag and were not yet visited
}

// Again has Next begin anew, with what it has seen of the bucket's meta.
func (pr *Probe) Again() { pr.open(pr.primary) }

// Next goes to the next word with the tag of the place; false if there is none.
// The record there may be of another key: the caller compares. A placeholder (no
// address, locked) has no record to compare with: readers pass over it; who
// wants to insert must take it for his own key and wait until it is gone.
func (pr *Probe) Next() bool {
	for {
		for pr.matches != 0 {
			i := pr.matches.next()
			pr.matches &= pr.matches - 1
			if w := pr.at.load(i); w != 0 && sameTop(w, pr.place) && !pr.otherPlaceholder(i, w) {
				pr.Word, pr.index = w, uint8(i)
				return true
			}
		}
		next := pr.following()
		if next == 0 {
			return false
		}
		pr.open(next)
	}
}

// None tells of a probe that was just started that Next would find nothing. It may fail to.
func (pr *Probe) None() bool { return pr.matches == 0 && pr.meta>>linkShift&linkMask == 0 }

// otherPlaceholder tells whether w is a placeholder of another place, as far as
// the index knows places: there is no record that would tell.
func (pr *Probe) otherPlaceholder(i int, w uint64) bool {
	return addressOf(w) == 0 && pr.at.tag(i) != tag(pr.place)
}

// Same tells whether both probes stand at one entry of one sub-table.
func (pr *Probe) Same(o *Probe) bool { return pr.at == o.at && pr.index == o.index }

// SamePlace tells whether the entry that Next stopped at agrees with the place
// that was sought in all bits that the index knows, not only in its tag.
func (pr *Probe) SamePlace() bool {
	return pr.at.tag(int(pr.index)) == tag(pr.place)
}

// Address returns the address in the word that Next stopped at; 0 for the
// placeholder of a key that a transaction has locked and that is absent.
func (pr *Probe) Address() record.Address { return addressOf(pr.Word) }

// Locked tells whether a transaction held the entry.
func (pr *Probe) Locked() bool { return pr.Word&lockedBit != 0 }

// Place returns the place that was searched for. In a walk only its known bits
// are set: the top 32 and the lowest 10.
func (pr *Probe) Place() record.Place { return pr.place }

// Known returns the bits of a place that the index keeps. Entries whose known
// bits are equal cannot be told apart without their records: a transaction that
// locks several absent keys takes those for one entry.
func Known(p record.Place) record.Place { return p & (^record.Place(1<<32-1) | bucketMask) }

// following returns the bucket after the current one, or 0.
func (pr *Probe) following() bucket {
	if pr.at == pr.primary {
		return pr.table.next(pr.meta, true)
	}
	return pr.table.next(pr.at.loadMeta(), false)
}

// open begins with the words of b.
func (pr *Probe) open(b bucket) {
	pr.at = b
	pr.matches, _ = b.match(pr.place)
}

func (pr *Probe) slot() *uint64 { return pr.at.word(int(pr.index)) }

// swap turns the word that the probe has seen into another one.
func (pr *Probe) swap(word uint64) bool {
	if !atomic.CompareAndSwapUint64(pr.slot(), pr.Word, word) {
		return false
	}
	pr.Word = word
	return true
}
