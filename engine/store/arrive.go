package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// Arrival is a set of places that this store serves while their records are still
// on their way from the source of a migration:
//
//	Arrive ── NewWorker ─┬─ Import, Import, ...  ─ Pulled ── Finish ── End
//	          NewWorker ─┘  (in parallel)
//
// The source changes nothing there any more, so what it has of a key is final, and may be
// imported at any time, from anywhere, and again. What is there is served at once. A key
// that is not there is missing: until the source was asked for it nobody knows whether it
// exists. So who must know gets Cold, and its Fetch asks the Puller. Blind writes need
// not know. Of cold records pulls may bring indirections only: then a key is missing
// for as long as there is one that may be of it.
//
// Invariants:
//   - Versions that this store gives in these places are above the ceiling, and those of the
//     source are not. So of a key the highest version wins, here and in every replay.
//   - A key that was removed here, or that the source was asked for and does not have, is
//     settled before it is seen to be absent: no pull brings it back, nobody asks again.
//   - What the source was asked for is no reason to refuse an import. If the places are returned, the source
//     gives versions below the ceiling again, and should it die this store is its heir.
//   - The log keeps the tombstones of these places until End: they settle keys in the next
//     life, which imports everything again.
//
// Who imports looks at the removed keys after it has sought the key and before it inserts:
// a key that was written and removed in between has changed its bucket, and the insertion
// fails; one that was removed before is noted as such.
type Arrival struct {
	st      *Store
	ranges  []Range
	ceiling uint64
	puller  Puller
	removed *settled // here, or in a former life of the same arrival
	asked   *settled // of the source, all of which came: see Settle
	large   arrivingLarge
	cold    *indirections // nil if the source sends none
	hasty   atomic.Bool   // see Hasten

	mu      sync.Mutex
	workers []*ImportWorker
	sides   []*hlog.Side // of workers, until they are part of the log
	left    []*hlog.Side // likewise, of those that were closed
	past    ImportStats  // of workers that ended
	over    bool

	waiting arrivalWait
}

// ArrivingKey names a key to the source of a migration: in a cluster tables have the
// same numbers everywhere.
type ArrivingKey struct {
	Place record.Place
	Table record.TableID
	Bytes []byte
}

// Puller asks the source for single keys: priority pulls.
type Puller interface {
	// Want asks for keys that operations wait for. done is called once, when each of them
	// was imported or settled, or with the error that the operations fail with. Neither Want nor
	// done waits; the puller may keep the keys.
	Want(keys []ArrivingKey, done func(error))
}

// ArriveOptions describe an arrival.
type ArriveOptions struct {
	Ranges []Range
	// Ceiling is such that no version at the source is higher: its Store.Ceiling.
	Ceiling uint64
	Puller  Puller
	// Indirect says that pulls bring indirections in the place of cold records.
	Indirect bool
	// Room is memory that was made ready for the arrival, whose it is from now on; nil: it is made now.
	Room *ArrivalRoom
}

// ArrivalRoom is memory that an arrival begins with. To make it takes milliseconds, which clients need not wait for.
type ArrivalRoom struct{ cold *indirections }

// NewArrivalRoom makes memory ready for an arrival with indirections. Close gives back what none took.
func (st *Store) NewArrivalRoom() (*ArrivalRoom, error) {
	if st.closed.Load() {
		return nil, ErrClosed
	}
	cold, err := newIndirections(st)
	if err != nil {
		return nil, err
	}
	return &ArrivalRoom{cold}, nil
}

// take gives what the room has, once; nil if there is nothing.
func (r *ArrivalRoom) take() *indirections {
	if r == nil {
		return nil
	}
	cold := r.cold
	r.cold = nil
	return cold
}

// Close gives the memory back that no arrival took.
func (r *ArrivalRoom) Close() {
	if cold := r.take(); cold != nil {
		cold.ix.Close()
	}
}

var (
	errNoPuller    = errors.New("an arrival needs ranges, and a puller that asks the source for keys")
	errTwice       = errors.New("a place cannot arrive twice at once: end the other arrival first")
	errArrivalOver = errors.New("the arrival is over: nothing may be imported any more")
)

// Arrive begins an arrival. The store has no records of these places but those of a former
// life of the same arrival, which Options.Arriving told Open of: see Retract. The results of
// the source's operations are imported before the places are served.
func (st *Store) Arrive(o ArriveOptions) (*Arrival, error) {
	if len(o.Ranges) == 0 || o.Puller == nil {
		return nil, errNoPuller
	}
	if st.closed.Load() {
		return nil, ErrClosed
	}
	a := &Arrival{st: st, ranges: slices.Clone(o.Ranges), ceiling: o.Ceiling, puller: o.Puller, removed: newSettled(), asked: newSettled()}
	a.waiting.init(a)
	if o.Indirect {
		var err error
		if a.cold = o.Room.take(); a.cold == nil {
			a.cold, err = newIndirections(st)
		}
		if err != nil {
			return nil, err
		}
	}
	st.raiseCeiling(o.Ceiling)
	st.floors.raiseAll(o.Ceiling)
	if err := st.arriving.begin(a); err != nil {
		if a.cold != nil {
			a.cold.ix.Close()
		}
		return nil, err
	}
	return a, nil
}

// Prepare makes memory ready for an arrival of about so many records and bytes, as far as there is plenty, until ctx ends: in
// the index and in the log. It costs clients little before an arrival, and much in its midst. What no
// arrival took of the log's is given back when the last of those who are Preparing has ended that.
func (st *Store) Prepare(ctx context.Context, ranges []Range, records, bytes int64) error {
	var pace background.Pace
	st.expectRecords(ctx, ranges, records, pace.Rest)
	room := st.maxResident()/2 - st.log.Resident()
	n := min((bytes+int64(st.opts.SegmentBytes)-1)/int64(st.opts.SegmentBytes), preparedBytes/int64(st.opts.SegmentBytes), room)
	if n <= 0 {
		return nil
	}
	return st.log.Prepare(ctx, int(n))
}

// Preparing is for who makes memory ready, before that: it is kept until end was called, and for others who are preparing.
func (st *Store) Preparing() (end func()) { return st.log.Preparing() }

// preparedBytes is how much is made ready at the most.
const preparedBytes = 1 << 30

// NewWorker gives a goroutine its part of the import. What it imports is what pulls of the
// source gave. It is closed by its Close, or by End.
func (a *Arrival) NewWorker() (*ImportWorker, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, errArrivalOver
	}
	ss, side, err := a.st.NewSideSession()
	if err != nil {
		return nil, err
	}
	w := &ImportWorker{ss: ss, owns: a.owns, live: a, side: side, run: new(importRun), exact: allExact(a.ranges)}
	a.workers = append(a.workers, w)
	a.sides = append(a.sides, side)
	return w, nil
}

func (a *Arrival) owns(p record.Place) bool { return anyHas(a.ranges, p) }

// Finish is called when all was pulled and imported, and no indirection is left: what is not there now does not exist, and
// what is there is part of the log, and as durable as the store promises. It ends the workers.
// After an error the places are pulled again, by other ones, or it is called again.
func (a *Arrival) Finish(ctx context.Context) error {
	if err := a.finishLarge(ctx); err != nil {
		return err
	}
	for _, r := range a.ranges {
		a.Pulled(r)
	}
	if err := a.waiting.await(ctx, a.st, wholeRange, nil); err != nil {
		return err
	}
	return a.Adopt(ctx)
}

// Adopt ends the workers, and returns when all that they imported is part of the log: in all
// copies of it, and in every recovery. Until then the source has to keep it. After an error it
// may be called again.
func (a *Arrival) Adopt(ctx context.Context) error {
	a.Hasten(false)
	a.mu.Lock()
	a.retireAll()
	sides := a.allSides()
	a.mu.Unlock()
	for _, s := range sides {
		s.Leave() // So that all are adopted together.
	}
	for _, s := range sides {
		if err := s.Close(ctx); err != nil {
			return err
		}
		a.mu.Lock()
		a.sides, a.left = without(a.sides, s), without(a.left, s)
		a.mu.Unlock()
	}
	return nil
}

// allSides lists the sides that may have something that is not part of the log. The caller holds mu.
func (a *Arrival) allSides() []*hlog.Side { return slices.Concat(a.sides, a.left) }

func without(all []*hlog.Side, s *hlog.Side) []*hlog.Side {
	return slices.DeleteFunc(all, func(o *hlog.Side) bool { return o == s })
}

// Hasten says whether pulls are under way, for whose end clients wait in a way: until then what came is not made part of the
// log, for the source keeps it, unless memory gets short. Adopt ends it.
func (a *Arrival) Hasten(on bool) { a.hasty.Store(on) }

// Pending is how many segments of what was imported are closed and not part of the log yet.
func (a *Arrival) Pending() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.allSides() {
		n += s.Pending()
	}
	return n
}

// Flush returns when all that was imported by now is part of the log, as Adopt does, and what took its place here. The workers go on.
func (a *Arrival) Flush(ctx context.Context) error {
	a.mu.Lock()
	sides, left := slices.Clone(a.sides), slices.Clone(a.left)
	a.mu.Unlock()
	for _, s := range sides {
		if err := s.Flush(ctx); err != nil {
			return err
		}
	}
	for _, s := range left {
		if err := s.Flush(ctx); err != nil {
			return err
		}
		a.mu.Lock()
		a.left = without(a.left, s) // It was closed before: nothing can have come since. Parcels have one each.
		a.mu.Unlock()
	}
	_, err := a.st.Settle(ctx)
	return err
}

// retireAll ends all workers. The caller holds mu.
func (a *Arrival) retireAll() {
	for _, w := range a.workers {
		w.retire()
	}
	a.workers = nil
}

// End ends the arrival: after the source was told that it is not needed any more, or after
// the places were given up, and their records with Retract. What was not adopted by then
// will be, in the background.
func (a *Arrival) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	a.over = true
	a.st.arriving.end(a)
	a.waiting.end()
	a.retireAll()
	if in := a.cold; in != nil {
		a.st.AfterGuards(in.ix.Close) // Somebody may be looking there.
	}
	for _, s := range a.allSides() {
		closeSoon(s)
	}
	a.sides, a.left = nil, nil
	a.st.noteBrought()
}

// closeSoon closes a side and does not wait until it is part of the log.
func closeSoon(s *hlog.Side) {
	ended, end := context.WithCancel(context.Background())
	end()
	_ = s.Close(ended)
}

// leave ends a worker. Its side takes no memory for what will never come; Adopt waits for it.
func (a *Arrival) leave(w *ImportWorker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.workers, w); i >= 0 {
		a.workers = slices.Delete(a.workers, i, i+1)
		w.retire()
		closeSoon(w.side)
		a.sides, a.left = without(a.sides, w.side), append(a.left, w.side)
	}
}

// Stats tells how far it has come.
func (a *Arrival) Stats() ImportStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := a.past
	for _, w := range a.workers {
		sum.add(w.count())
	}
	return sum
}

// arrivals are those of a store. Others load open once: nil if there are none, which is the
// rule.
type arrivals struct {
	mu   sync.Mutex
	open atomic.Pointer[[]*Arrival]
}

// begin lists an arrival. It takes over what the log told of its places.
func (as *arrivals) begin(a *Arrival) error {
	as.mu.Lock()
	defer as.mu.Unlock()
	var all []*Arrival
	for _, o := range as.list() {
		switch {
		case !overlap(o.ranges, a.ranges):
		case o.puller != nil:
			return errTwice
		default:
			a.removed = o.removed
			o = o.without(a.ranges)
		}
		if o != nil {
			all = append(all, o)
		}
	}
	all = append(all, a)
	as.open.Store(&all)
	return nil
}

// end takes an arrival off the list.
func (as *arrivals) end(a *Arrival) {
	as.edit(func(o *Arrival) *Arrival {
		if o == a {
			return nil
		}
		return o
	})
}

// edit puts what f gives in the place of each arrival; nil is none.
func (as *arrivals) edit(f func(*Arrival) *Arrival) {
	as.mu.Lock()
	defer as.mu.Unlock()
	var all []*Arrival
	for _, o := range as.list() {
		if o = f(o); o != nil {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		as.open.Store(nil)
		return
	}
	as.open.Store(&all)
}

// any tells whether there are any.
func (as *arrivals) any() bool { return as.open.Load() != nil }

func (as *arrivals) list() []*Arrival {
	if all := as.open.Load(); all != nil {
		return *all
	}
	return nil
}

// hasty tells whether one of them is pulled.
func (as *arrivals) hasty() bool {
	return slices.ContainsFunc(as.list(), func(a *Arrival) bool { return a.hasty.Load() })
}

// has tells whether records of a place may still arrive.
func (as *arrivals) has(p record.Place) bool {
	for _, a := range as.list() {
		if a.owns(p) {
			return true
		}
	}
	return false
}
