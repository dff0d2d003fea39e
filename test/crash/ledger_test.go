package crash

import "sync/atomic"

// ledger counts a client's operations. The client alone raises sent and
// acknowledged; whoever had a checkpoint made raises kept.
type ledger struct {
	sent         int64
	acknowledged atomic.Int64
	kept         atomic.Int64 // as many survive a kill, whatever the durability
}

func (l *ledger) book() *ledger { return l }

// least is how many operations must be found after a death of the process.
func (l *ledger) least(logged bool) int64 {
	if logged {
		return l.acknowledged.Load()
	}
	return l.kept.Load()
}

// settled says that what is on disk by now is what was found: the first n.
func (l *ledger) settled(n int64) {
	l.sent = n
	l.acknowledged.Store(n)
	l.kept.Store(n)
}

// saving is a checkpoint under way: what it will keep at least.
type saving struct {
	books []*ledger
	least []int64
}

// beginSave notes what is acknowledged before a checkpoint begins.
func beginSave(books []*ledger) saving {
	s := saving{books: books}
	for _, b := range books {
		s.least = append(s.least, b.acknowledged.Load())
	}
	return s
}

// done says that the checkpoint is complete.
func (s saving) done() {
	for i, b := range s.books {
		for old := b.kept.Load(); old < s.least[i] && !b.kept.CompareAndSwap(old, s.least[i]); old = b.kept.Load() {
		}
	}
}
