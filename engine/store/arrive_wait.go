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
	turn     chan struct{}         // closed when left shrinks, or all are released
	keys     map[*askedOf]struct{} // that wait for keys; who takes one off calls its done
	released bool
	err      error
}

func (w *arrivalWait) init(a *Arrival) {
	w.of, w.turn, w.ended = a, make(chan struct{}), make(chan struct{})
	w.keys = map[*askedOf]struct{}{}
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
	w.dismiss()
}

// look is change without one: those who wait for keys look again, as some may not wait any more.
func (w *arrivalWait) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dismiss()
}

// dismiss lets those go who need not wait for their keys. They hear of it from another goroutine: here somebody may hold what
// they need. The caller holds mu.
func (w *arrivalWait) dismiss() {
	for q := range w.keys {
		if over, err := q.over(); over {
			delete(w.keys, q)
			go q.done(err)
		}
	}
}

// take takes one that waits for keys off the list; false if somebody has.
func (w *arrivalWait) take(q *askedOf) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, waits := w.keys[q]
	delete(w.keys, q)
	return waits
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

// Unsettled tells of an operation that ended without an effect, or a truncation that ended half-way, since nobody here can know whose its
// keys are: to be asked again, and perhaps elsewhere.
func Unsettled(err error) bool {
	return errors.Is(err, ErrReturning) || errors.Is(err, ErrDeparting) || errors.Is(err, ErrStopping)
}

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
	done  func(error)     // of who waits for the keys
}

// start has done called once, when it need not be waited for any more; for the end of a return so long at the most. Who waits for keys, as
// most do, costs no goroutine: the puller's calls done, or this one if there is nothing to wait for.
func (q *askedOf) start(most time.Duration, done func(error)) {
	if q.late || len(q.whole) > 0 {
		go q.get(most, done)
		return
	}
	q.getKeys(done)
}

// get is start for what is waited for in a goroutine of its own.
func (q *askedOf) get(most time.Duration, done func(error)) {
	w := &q.from.waiting
	if q.late {
		done(w.awaitEnd(q.from.st, most, q.gone)) // Another look before that would find the same.
		return
	}
	w.whole.Add(1)
	end := func(err error) {
		w.whole.Add(-1)
		done(err)
	}
	for _, r := range q.whole {
		if err := w.await(context.Background(), q.from.st, r, q.gone); err != nil {
			end(err)
			return
		}
	}
	q.getKeys(end)
}

// getKeys asks for the keys. Who stops pulling need not answer, and what came meanwhile
// need not be waited for.
func (q *askedOf) getKeys(done func(error)) {
	if over, err := q.enlist(done); over {
		done(err)
		return
	}
	q.from.puller.Want(q.keys, func(err error) {
		if q.from.waiting.take(q) {
			done(err)
		}
	})
}

// enlist puts it on the list of those who wait for keys, unless that is over. Who makes it over looks at the list afterwards.
func (q *askedOf) enlist(done func(error)) (over bool, err error) {
	w := &q.from.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if over, err = q.over(); !over {
		q.done = done
		w.keys[q] = struct{}{}
	}
	return over, err
}

// over tells whether the keys need not be waited for any more. The caller holds the mutex of the arrival's wait.
func (q *askedOf) over() (bool, error) {
	w := &q.from.waiting
	switch {
	case w.released:
		return true, w.err
	case isClosed(q.gone), isClosed(q.from.st.leaving):
		return true, ErrClosed
	}
	return !slices.ContainsFunc(q.keys, q.from.Awaits), nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lookAll has all look again who wait for keys that arrive.
func (as *arrivals) lookAll() {
	for _, a := range as.list() {
		a.waiting.look()
	}
}
