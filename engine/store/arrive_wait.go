package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// arrivalWait is what of an arrival can be waited for.
type arrivalWait struct {
	left  atomic.Pointer[[]Range] // not pulled yet; never nil
	of    *Arrival
	whole atomic.Int32 // how many wait for whole ranges
	given atomic.Bool  // who waited was let go, to look again
	ended chan struct{}

	mu       sync.Mutex
	turn     chan struct{} // closed when left shrinks, or all are released
	released bool
	err      error
}

func (w *arrivalWait) init(a *Arrival) {
	w.of, w.turn, w.ended = a, make(chan struct{}), make(chan struct{})
	w.left.Store(&a.ranges)
}

// meets tells whether something of r is not pulled yet, or known only.
func (w *arrivalWait) meets(r Range) bool {
	return overlap(*w.left.Load(), []Range{r}) || w.of.cold.meets(r)
}

// change runs f, and lets those who wait look again.
func (w *arrivalWait) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.turn)
	w.turn = make(chan struct{})
}

// release lets all go that wait now or later; err is what they are told.
func (w *arrivalWait) release(err error) {
	w.given.Store(err == nil)
	w.change(func() { w.released, w.err = true, err })
}

// end lets those go who wait for that.
func (w *arrivalWait) end() {
	w.release(nil)
	close(w.ended)
}

// ErrReturning says that somebody has waited for the end of a return for as long as it may. Nobody knows meanwhile whose the places are:
// the source, which may be slow, or this store's again, should the source be dead; and while etcd is away nobody will.
var ErrReturning = errors.New("keys are being returned to the node that they came from, and that takes long")

// ErrStopping says that nobody brings any more what somebody has waited for, as this node stops, or its log is over.
var ErrStopping = errors.New("the node stops before these keys have come")

// Unsettled tells of an operation that ended without an effect since nobody here can know whose its keys are: to be asked again, and
// perhaps elsewhere.
func Unsettled(err error) bool { return errors.Is(err, ErrReturning) || errors.Is(err, ErrStopping) }

// awaitEnd waits for the end of the arrival, or until nobody is to wait for that; for so long at the most, if that is not 0.
func (w *arrivalWait) awaitEnd(st *Store, most time.Duration, gone <-chan struct{}) error {
	var late <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	for {
		w.mu.Lock()
		turn, err := w.turn, w.err
		w.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-turn:
		case <-w.ended:
			return nil
		case <-late:
			return ErrReturning
		case <-gone:
			return ErrClosed
		case <-st.leaving:
			return ErrClosed
		}
	}
}

// over tells whether nobody has to wait for r any more; if not, what happens next.
func (w *arrivalWait) over(r Range) (over bool, turn chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.released {
		return true, nil, w.err
	}
	return !w.meets(r), w.turn, nil
}

// await waits until all of r was pulled.
func (w *arrivalWait) await(ctx context.Context, st *Store, r Range, gone <-chan struct{}) error {
	for {
		over, turn, err := w.over(r)
		if over {
			return err
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return ctx.Err()
		case <-gone:
			return ErrClosed
		case <-st.leaving:
			return ErrClosed
		}
	}
}

// Pulled says that all of a range was pulled and imported: what is not there does not exist.
// It counts when all who are looking for something now are through: they may have looked
// before it came.
func (a *Arrival) Pulled(r Range) {
	a.st.AfterGuards(func() {
		a.waiting.change(func() {
			left := subtract(*a.waiting.left.Load(), r)
			a.waiting.left.Store(&left)
		})
	})
}

// Release lets all operations go that wait for this arrival: to be run again, or to fail with err, then those that come later
// as well. It is for those who stop pulling. Without an error nobody serves these places any more, but until End they may be
// this store's or become so again: who needs them all the same, as a scan of everything does, waits for that.
func (a *Arrival) Release(err error) { a.waiting.release(err) }

// asked is what an operation needs of an arrival: a key, or all of a range.
type asked struct {
	from  *Arrival
	key   ArrivingKey
	whole bool
	all   Range
	late  bool // nothing was pulled any more when it was looked for
}

// missing tells what it means that k is not there: NotFound, or Cold if it may arrive.
func (ss *Session) missing(k *Key) Status {
	if k.Table == chunkTable || k.Table == completionTable {
		return NotFound // They are there before what they belong to is.
	}
	for _, a := range ss.st.arriving.list() {
		if a.puller == nil || !anyHas(*a.waiting.left.Load(), k.Place) && !a.holdsBack(k.Place) || a.knows(k) {
			continue
		}
		ss.asked = append(ss.asked, asked{from: a, key: ArrivingKey{k.Place, k.Table, bytes.Clone(k.Bytes)}, late: a.waiting.given.Load()})
		return Cold
	}
	return NotFound
}

// holdsBack tells whether the source may have a cold record of a place, and this arrival only
// knows of it.
func (a *Arrival) holdsBack(p record.Place) bool { return a.owns(p) && a.cold.has(p) }

// lacks is missing for who answers that k is not there. It may have come after it was looked for, and been settled
// before missing was asked: then Conflict asks for another look.
func (ss *Session) lacks(k *Key) Status {
	st := ss.missing(k)
	if st != NotFound {
		return st
	}
	var pr index.Probe
	if _, again := ss.find(k, &pr); again != NotFound {
		return Conflict
	}
	return NotFound
}

// arrives tells whether something of r is still to come; then the operation waits for it.
func (ss *Session) arrives(r Range) bool {
	some := false
	for _, a := range ss.st.arriving.list() {
		if a.puller != nil && a.waiting.meets(r) {
			ss.asked = append(ss.asked, asked{from: a, whole: true, all: r, late: a.waiting.given.Load()})
			some = true
		}
	}
	return some
}

// takeAsked gives what the operations since the last call need of each arrival.
func (ss *Session) takeAsked() (all []*askedOf) {
	for _, one := range ss.asked {
		i := slices.IndexFunc(all, func(o *askedOf) bool { return o.from == one.from })
		if i < 0 {
			i = len(all)
			all = append(all, &askedOf{from: one.from, gone: ss.gone})
		}
		all[i].late = all[i].late || one.late
		if one.whole {
			all[i].whole = append(all[i].whole, one.all)
		} else {
			all[i].keys = append(all[i].keys, one.key)
		}
	}
	ss.asked = nil
	return all
}

// askedOf is what a fetch needs of one arrival.
type askedOf struct {
	from  *Arrival
	keys  []ArrivingKey
	whole []Range
	late  bool
	gone  <-chan struct{} // of who asks
}

// get waits for it, for the end of a return so long at the most, and calls done then. It is called in a goroutine of its own.
func (q *askedOf) get(most time.Duration, done func(error)) {
	w := &q.from.waiting
	if q.late {
		done(w.awaitEnd(q.from.st, most, q.gone)) // Another look before that would find the same.
		return
	}
	if len(q.whole) > 0 {
		w.whole.Add(1)
		defer w.whole.Add(-1)
	}
	for _, r := range q.whole {
		if err := w.await(context.Background(), q.from.st, r, q.gone); err != nil {
			done(err)
			return
		}
	}
	q.getKeys(done)
}

// getKeys asks for the keys. Who stops pulling need not answer, and what came meanwhile
// need not be waited for.
func (q *askedOf) getKeys(done func(error)) {
	answer := make(chan error, 1)
	over, turn, err := q.over()
	if !over {
		q.from.puller.Want(q.keys, func(err error) { answer <- err })
	}
	for ; !over; over, turn, err = q.over() {
		select {
		case err := <-answer:
			done(err)
			return
		case <-turn:
		case <-q.gone:
			done(ErrClosed)
			return
		case <-q.from.st.leaving:
			done(ErrClosed)
			return
		}
	}
	done(err)
}

// over tells whether the keys need not be waited for any more; if not, what happens next.
func (q *askedOf) over() (over bool, turn chan struct{}, err error) {
	w := &q.from.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.released {
		return true, nil, w.err
	}
	for _, k := range q.keys {
		if q.from.Awaits(k) {
			return false, w.turn, nil
		}
	}
	return true, nil, nil
}
