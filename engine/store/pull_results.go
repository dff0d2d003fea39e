package store

import (
	"context"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Completions gives the results of operations on keys in some ranges, as entries of the log,
// for the next owner to import before it serves them. emit must not keep them. Nobody may run
// operations there meanwhile, and clients wait: so where the receipts of clients tell of all
// results, nobody goes through the index.
func (st *Store) Completions(ctx context.Context, ranges []Range, emit func(entry []byte)) error {
	if results, _ := st.tables.completions.sum(); results == 0 {
		return nil
	}
	ss, err := st.NewSession()
	if err != nil {
		return err
	}
	defer ss.Close()
	if st.opts.Now() > st.clients.foreign.Load() {
		return ss.givenReceipts(ctx, ranges, emit)
	}
	for _, r := range ranges {
		if err := ss.givenResults(ctx, r, emit); err != nil {
			return err
		}
	}
	return nil
}

// givenReceipts gives the results of operations that this process has run.
func (ss *Session) givenReceipts(ctx context.Context, ranges []Range, emit func([]byte)) error {
	for _, one := range ss.st.clients.kept(ranges, ss.st.opts.Now()) {
		for st := Cold; st == Cold; {
			ss.Begin()
			st = ss.giveResult(one, emit)
			ss.End()
			if st != Cold {
				break
			}
			if err := ss.Fetch(ctx); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// giveResult gives the result of an operation, if it is there.
func (ss *Session) giveResult(one keptResult, emit func([]byte)) Status {
	var buf [completionKeyBytes]byte
	var pr index.Probe
	k := ss.opKey(one.place, one.id, &buf)
	p, st := ss.find(&k, &pr)
	if st == OK && !ss.expired(p) {
		emit(p.Bytes())
	}
	return st
}

// resultBuckets are looked at at once, so that their cache misses overlap.
const resultBuckets = 16

// givenResults gives all results in r that the index has.
func (ss *Session) givenResults(ctx context.Context, r Range, emit func([]byte)) error {
	pl := new(pulling)
	for cursor, wide := uint64(0), r.slots(); ; {
		ss.Begin()
		pl.gather(ss, wide, cursor, resultBuckets)
		all := ss.giveResults(pl, r, emit)
		ss.End()
		if err := ctx.Err(); err != nil {
			return err
		}
		if !all {
			if err := ss.Fetch(ctx); err != nil {
				return err
			}
			continue
		}
		if cursor = pl.next[pl.n-1]; cursor == 0 {
			return nil
		}
	}
}

// giveResults gives those among what was gathered; false if something of it is cold: then
// nothing was given.
func (ss *Session) giveResults(pl *pulling, r Range, emit func([]byte)) bool {
	all := true
	for i := range pl.items {
		if it := &pl.items[i]; it.p.IsNil() {
			p, ok := ss.entry(it.at)
			if !ok {
				ss.want(it.at)
				all = false
			}
			it.p = p
		}
	}
	if !all {
		return false
	}
	for _, it := range pl.items {
		if p := it.p; p.Type() == record.TypeCompletion && !ss.expired(p) && r.has(objectOf(p.Key())) {
			emit(p.Bytes())
		}
	}
	return true
}
