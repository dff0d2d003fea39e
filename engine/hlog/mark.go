package hlog

import "github.com/ostrodb/ostro/engine/record"

// Mark names an entry by its head and its position there, in one word. Unlike an
// address it is never another's later. The zero Mark is of no entry.
type Mark uint64

const (
	markHeadBits = 12
	markPosition = 1<<(64-markHeadBits) - 1 // 4 PiB through one head in one life
)

// Mark gives the mark of the entry at a, which is about to become part of the
// log. The caller holds the lock.
func (h *Head) Mark(a record.Address) Mark {
	if h.side != nil {
		panic("hlog: a side brings records, and removes none")
	}
	return Mark(uint64(h.n)<<(64-markHeadBits) | (h.start+uint64(a.Offset())+1)&markPosition)
}

// Marked gives the head of a mark, and the position after which its entry counts
// as sealed.
func (l *Log) Marked(m Mark) (*Head, uint64) {
	h, n := l.survivor, int(m>>(64-markHeadBits))
	if n < len(l.heads) {
		h = l.heads[n]
	}
	return h, uint64(m) & markPosition
}

// Settled tells whether the marked entry survives what the log promises to
// survive.
func (l *Log) Settled(m Mark) bool {
	h, pos := l.Marked(m)
	if !l.late {
		return pos <= h.sealed.Load()
	}
	return (!l.opts.SyncEach || pos <= h.syncedTo.Load()) && (l.opts.Replicator == nil || pos <= h.copiedTo.Load())
}
