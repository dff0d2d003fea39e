package store

import (
	"context"
	"slices"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Completions gives the results of operations on keys in some ranges, as entries of the log,
// for the next owner to import before it serves them. emit must not keep them. Nobody may run
// operations there meanwhile, and clients wait: so receipts and notes tell where results are, and
// nothing else is looked at. One may be given twice, and those that were answered need not be.
func (st *Store) Completions(ctx context.Context, ranges []Range, emit func(entry []byte)) error {
	return st.CompletionsWith(ctx, ranges, CompletionOptions{Emit: emit})
}

// CompletionOptions say who gets results.
type CompletionOptions struct {
	Emit func(entry []byte)
	// Advanced is called after every few that were looked at, given or not, if it is not nil. It may wait, for no guard does so
	// meanwhile, as one does for Emit. Its error ends it all.
	Advanced func() error
}

// CompletionsWith is Completions with options.
func (st *Store) CompletionsWith(ctx context.Context, ranges []Range, o CompletionOptions) error {
	if results, _ := st.tables.completions.sum(); results == 0 {
		return nil
	}
	ss, err := st.NewSession()
	if err != nil {
		return err
	}
	defer ss.Close()
	now := st.opts.Now()
	if now <= st.clients.foreign.untold.Load() {
		return ss.givenResults(ctx, ranges, &o)
	}
	if err := ss.givenKept(ctx, st.clients.kept(ranges, now), &o); err != nil {
		return err
	}
	for _, page := range st.clients.foreign.list() {
		if err := ss.givenKept(ctx, st.clients.keptForeign(page, ranges, now), &o); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// advanced says that some were looked at.
func (o *CompletionOptions) advanced(ctx context.Context) error {
	if o.Advanced != nil {
		if err := o.Advanced(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// resultsAtOnce are looked up inside one guard, and read together if they are cold.
const resultsAtOnce = 64

// givenKept gives the results of operations that are known of. It uses the list up.
func (ss *Session) givenKept(ctx context.Context, all []keptResult, o *CompletionOptions) error {
	for some := range slices.Chunk(all, resultsAtOnce) {
		for len(some) > 0 {
			some = ss.giveKept(some, o.Emit)
			if err := o.advanced(ctx); err != nil {
				return err
			}
			if len(some) == 0 {
				break
			}
			if err := ss.Fetch(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveKept gives some results and returns those that are cold.
func (ss *Session) giveKept(some []keptResult, emit func([]byte)) (cold []keptResult) {
	ss.Begin()
	defer ss.End()
	cold = some[:0]
	for _, one := range some {
		if ss.giveResult(one, emit) == Cold {
			cold = append(cold, one)
		}
	}
	return cold
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

// givenResults gives all results in some ranges that the index has, without any word of where they are. It reads all that is cold there.
func (ss *Session) givenResults(ctx context.Context, ranges []Range, o *CompletionOptions) error {
	for _, r := range ranges {
		if err := ss.givenResultsOf(ctx, r, o); err != nil {
			return err
		}
	}
	return nil
}

func (ss *Session) givenResultsOf(ctx context.Context, r Range, o *CompletionOptions) error {
	pl := new(pulling)
	for cursor, wide := uint64(0), r.slots(); ; {
		ss.Begin()
		pl.gather(ss, wide, cursor, resultBuckets)
		all := ss.giveResults(pl, r, o.Emit)
		ss.End()
		if err := o.advanced(ctx); err != nil {
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
