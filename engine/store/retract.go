package store

import (
	"context"
	"runtime"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// slots gives the places at which all that belongs to a range may be indexed: pieces of large
// values and results of operations lie anywhere in the slot of their key.
func (r Range) slots() Range { return Range{r.First &^ slotRest, r.Last | slotRest} }

// Retract takes all that belongs to some ranges out of the index, and writes nothing of
// it: the ranges are another node's, or will be served anew. Nobody may write to them, nor
// read. Nothing is expected there any more, as of Arrived. The log's memory comes back in the background. After an error it may be called again.
func (st *Store) Retract(ctx context.Context, ranges []Range) error {
	ss, err := st.NewSession()
	if err != nil {
		return err
	}
	defer ss.Close()
	background.Quietly(func() {
		for _, r := range ranges {
			if err = ss.retract(ctx, r); err != nil {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if err := st.leave(ctx, ranges); err != nil {
		return err
	}
	st.sender.dropped.remove(ranges)
	st.Arrived(ranges) // What was removed in this stay says nothing of what comes with the next.
	st.room.ask()
	return nil
}

func (ss *Session) retract(ctx context.Context, r Range) error {
	wide := r.slots()
	out := retracting{ss: ss, r: r, whole: r == wide}
	var entries []index.Probe
	for cursor := uint64(0); ; {
		entries = entries[:0]
		st := OK
		ss.Begin()
		next := ss.ix.StepRange(wide.First, wide.Last, cursor, sweepBuckets, func(pr *index.Probe) bool {
			entries = append(entries, *pr)
			return true
		})
		for i := range entries { // So that their cache misses overlap.
			if a := entries[i].Address(); a != 0 {
				if p := ss.log.See(a).Entry(); !p.IsNil() {
					ss.fetchLines(p)
				}
			}
		}
		for i := range entries {
			if one := out.take(&entries[i]); one != OK && st != Cold {
				st = one
			}
		}
		ss.End()
		switch {
		case st == Cold:
			if err := ss.Fetch(ctx); err != nil {
				return err
			}
		case st == OK:
			cursor = next
		default:
			runtime.Gosched() // Whoever is at an entry has it for a moment.
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if st == OK && next == 0 {
			return nil
		}
	}
}

// retracting takes entries of a range out of the index.
type retracting struct {
	ss    *Session
	r     Range
	whole bool // it has all of its slots
	last  lastTable
}

// take takes an entry out of the index if it belongs to the range. Conflict asks for another look.
func (out *retracting) take(pr *index.Probe) Status {
	ss, a := out.ss, pr.Address()
	if a == 0 {
		return OK
	}
	p, ok := ss.entry(a)
	if !ok {
		ss.want(a)
		return Cold
	}
	if !out.has(p) {
		return OK
	}
	if !ss.ix.Remove(pr) {
		return Conflict
	}
	ss.head.Died(a, uint32(p.Length()))
	if t := out.last.find(ss.tables, p.Table()); t != nil && p.Table() != chunkTable {
		t.count(ss.n, worth{}.minus(worthOf(p)))
	}
	return OK
}

// has tells whether an entry that is indexed in one of the range's slots belongs to it. A record is indexed at its place, of which the index
// knows the slot.
func (out *retracting) has(p record.Ptr) bool {
	if out.whole && p.Type() == record.TypePut && p.Table() != chunkTable {
		return true
	}
	place, ok := PlaceOfEntry(p)
	return ok && out.r.has(place)
}
