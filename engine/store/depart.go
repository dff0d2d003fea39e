package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/record"
)

// Departure notes which keys of some ranges change while another store copies them, and this one goes on to
// serve them. Who copies reads all records, then what was noted meanwhile, again and again, and the rest when
// nobody writes any more: see Pull and PullChanges.
//
// A key is noted before its change is seen, inside the guard of who changes it. So when all guards that were
// open at a Take have ended, what it took is as it is read then, or was noted again.
type Departure struct {
	st     *Store
	ranges []Range
	shards [departShards]departShard
}

const departShards = 64

type departShard struct {
	mu   sync.Mutex
	keys map[departName]struct{}
}

type departName struct {
	table record.TableID
	key   string
}

var errInPlace = errors.New("this store changes records where they lie, and cannot tell which: it must have a log")

// Depart begins to note. When it returns, all that is not noted can be read.
func (st *Store) Depart(ctx context.Context, ranges []Range) (*Departure, error) {
	if !st.opts.logged() {
		return nil, errInPlace
	}
	d := &Departure{st: st, ranges: slices.Clone(ranges)}
	st.departs.change(func(all []*Departure) []*Departure { return append(all, d) })
	if err := st.passGuards(ctx); err != nil {
		d.End()
		return nil, err
	}
	return d, nil
}

// End ends it.
func (d *Departure) End() {
	d.st.departs.change(func(all []*Departure) []*Departure {
		return slices.DeleteFunc(all, func(o *Departure) bool { return o == d })
	})
}

// Take gives the keys that were noted since the last one, and forgets them.
func (d *Departure) Take(ctx context.Context) (keys []ArrivingKey, err error) {
	for i := range d.shards {
		keys = d.shards[i].take(keys)
	}
	return keys, d.st.passGuards(ctx)
}

func (s *departShard) take(all []ArrivingKey) []ArrivingKey {
	s.mu.Lock()
	taken := s.keys
	s.keys = nil
	s.mu.Unlock()
	for n := range taken {
		key := []byte(n.key)
		all = append(all, ArrivingKey{record.PlaceOf(n.table, key), n.table, key})
	}
	return all
}

// note notes a key. Pieces of large values go with what names them, and results of operations by another way.
func (d *Departure) note(k *Key) {
	if k.Table == chunkTable || k.Table == completionTable || !anyHas(d.ranges, k.Place) {
		return
	}
	s := &d.shards[uint64(k.Place)%departShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[departName]struct{}{}
	}
	s.keys[departName{k.Table, string(bytes.Clone(k.Bytes))}] = struct{}{}
}

// passGuards waits until every session that is between Begin and End now has passed its End.
func (st *Store) passGuards(ctx context.Context) error {
	passed := make(chan struct{})
	st.AfterGuards(func() { close(passed) })
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// departures are those of a store. Writers load open once: nil if there are none, which is the rule.
type departures struct {
	mu   sync.Mutex
	open atomic.Pointer[[]*Departure]
	turn chan struct{} // closed at the next change, if somebody waits for it
}

func (ds *departures) any() bool { return ds.open.Load() != nil }

// note notes a key that is about to change.
func (ds *departures) note(k *Key) {
	if all := ds.open.Load(); all != nil {
		for _, d := range *all {
			d.note(k)
		}
	}
}

func (ds *departures) list() []*Departure {
	if all := ds.open.Load(); all != nil {
		return *all
	}
	return nil
}

// departing tells whether another store copies a place.
func departing(all []*Departure, p record.Place) bool {
	return slices.ContainsFunc(all, func(d *Departure) bool { return anyHas(d.ranges, p) })
}

// ErrDeparting says that somebody has waited for as long as it may until it is decided whose places are that another store copies.
var ErrDeparting = errors.New("keys are being handed over to another node, and that takes long")

// await waits until no other store copies a place; for so long at the most, if that is not 0.
func (ds *departures) await(ctx context.Context, p record.Place, most time.Duration) error {
	if most > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeoutCause(ctx, most, ErrDeparting)
		defer end()
	}
	for {
		ds.mu.Lock()
		if ds.turn == nil {
			ds.turn = make(chan struct{})
		}
		turn, over := ds.turn, !departing(ds.list(), p)
		ds.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (ds *departures) change(f func([]*Departure) []*Departure) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.turn != nil {
		defer close(ds.turn) // of this moment
		ds.turn = nil
	}
	var all []*Departure
	if old := ds.open.Load(); old != nil {
		all = slices.Clone(*old)
	}
	if all = f(all); len(all) == 0 {
		ds.open.Store(nil)
		return
	}
	ds.open.Store(&all)
}
