package store

import (
	"context"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Completions sends the results of operations on keys in some ranges, as entries of the log in parts of about
// partBytes, for the next owner to import before it serves them. send must not keep them; it may wait, for no guard does so
// meanwhile. Nobody may run operations there, and clients wait: so where the receipts of clients tell of all
// results, nobody goes through the index.
func (st *Store) Completions(ctx context.Context, ranges []Range, partBytes int, send func(part []byte) error) error {
	if results, _ := st.tables.completions.sum(); results == 0 {
		return nil
	}
	ss, err := st.NewSession()
	if err != nil {
		return err
	}
	defer ss.Close()
	to := &parts{most: partBytes, send: send}
	if st.opts.Now() > st.clients.foreign.Load() {
		err = ss.givenReceipts(ctx, ranges, to)
	} else {
		err = ss.givenResults(ctx, ranges, to)
	}
	if err != nil {
		return err
	}
	return to.flush()
}

// parts are entries on their way to somebody who may be slow: they are collected inside of guards, and sent outside.
type parts struct {
	part []byte
	most int
	send func(part []byte) error
}

func (p *parts) add(entry []byte) { p.part = append(p.part, entry...) }

// sendFull sends what was collected if it is enough for a part.
func (p *parts) sendFull() error {
	if len(p.part) < p.most {
		return nil
	}
	return p.flush()
}

func (p *parts) flush() error {
	if len(p.part) == 0 {
		return nil
	}
	part := p.part
	p.part = p.part[:0]
	return p.send(part)
}

// givenReceipts gives the results of operations that this process has run.
func (ss *Session) givenReceipts(ctx context.Context, ranges []Range, to *parts) error {
	for _, one := range ss.st.clients.kept(ranges, ss.st.opts.Now()) {
		for st := Cold; st == Cold; {
			ss.Begin()
			st = ss.giveResult(one, to)
			ss.End()
			if st != Cold {
				break
			}
			if err := ss.Fetch(ctx); err != nil {
				return err
			}
		}
		if err := to.sendFull(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// giveResult gives the result of an operation, if it is there.
func (ss *Session) giveResult(one keptResult, to *parts) Status {
	var buf [completionKeyBytes]byte
	var pr index.Probe
	k := ss.opKey(one.place, one.id, &buf)
	p, st := ss.find(&k, &pr)
	if st == OK && !ss.expired(p) {
		to.add(p.Bytes())
	}
	return st
}

// resultBuckets are looked at at once, so that their cache misses overlap.
const resultBuckets = 16

// givenResults gives all results that the index has.
func (ss *Session) givenResults(ctx context.Context, ranges []Range, to *parts) error {
	for _, r := range ranges {
		if err := ss.givenResultsOf(ctx, r, to); err != nil {
			return err
		}
	}
	return nil
}

func (ss *Session) givenResultsOf(ctx context.Context, r Range, to *parts) error {
	pl := new(pulling)
	for cursor, wide := uint64(0), r.slots(); ; {
		ss.Begin()
		pl.gather(ss, wide, cursor, resultBuckets)
		all := ss.giveResults(pl, r, to)
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
		if err := to.sendFull(); err != nil {
			return err
		}
		if cursor = pl.next[pl.n-1]; cursor == 0 {
			return nil
		}
	}
}

// giveResults gives those among what was gathered; false if something of it is cold: then
// nothing was given.
func (ss *Session) giveResults(pl *pulling, r Range, to *parts) bool {
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
			to.add(p.Bytes())
		}
	}
	return true
}
