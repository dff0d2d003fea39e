package store

import (
	"slices"

	"github.com/ostrodb/ostro/engine/record"
)

// Indirections is how many cold records this arrival only knows of: each is still to be asked
// for, by an operation or in the background, before Finish.
func (a *Arrival) Indirections() int64 { return a.cold.count() }

// AllPulled tells whether every range was pulled: what is not there is known of, or does not exist.
func (a *Arrival) AllPulled() bool { return len(*a.waiting.left.Load()) == 0 }

// HasPulled tells whether the range of a place was pulled: what the source has there is here or known of.
func (a *Arrival) HasPulled(p record.Place) bool { return !anyHas(*a.waiting.left.Load(), p) }

// ColdSegments lists the segments of the source's log that indirections have named.
func (a *Arrival) ColdSegments() []record.SegmentID {
	if a.cold == nil {
		return nil
	}
	return a.cold.named()
}

// Hurried tells whether somebody waits for all cold records of a range: a scan, say.
func (a *Arrival) Hurried() bool { return a.waiting.whole.Load() > 0 }

// indirect runs f inside a guard with what is known of cold records; not if the worker has ended.
func (w *ImportWorker) indirect(f func(*indirections)) error {
	w.busy.Lock()
	defer w.busy.Unlock()
	if w.over || w.live.cold == nil {
		return errArrivalOver
	}
	w.ss.Begin()
	defer w.ss.End()
	f(w.live.cold)
	return nil
}

// Refer notes what a pull said of cold records, before its range is Pulled.
func (w *ImportWorker) Refer(list []Indirection) error {
	if len(list) == 0 {
		return nil
	}
	var failed error
	err := w.indirect(func(in *indirections) {
		for _, i := range list {
			if failed = in.add(i); failed != nil {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// RefersTo tells whether there may be a cold record at a place, which is asked for by the place then.
func (w *ImportWorker) RefersTo(p record.Place) (yes bool) {
	err := w.indirect(func(in *indirections) { yes = in.has(p) })
	return err == nil && yes
}

// Resolved says that all that the source has at the known bits of some places was imported, as
// Session.PullKnown gave it. It tells how many were only known of until now.
func (w *ImportWorker) Resolved(places []record.Place) (n int64, err error) {
	return w.resolve(len(places), func(in *indirections, i int) (int64, bool) { return in.remove(places[i], 0) })
}

// ResolvedAt says that the source was asked for single cold records, and what is alive of them was
// imported, as Session.PullSegment gave it. It tells how many were only known of until now.
func (w *ImportWorker) ResolvedAt(list []Indirection) (n int64, err error) {
	return w.resolve(len(list), func(in *indirections, i int) (int64, bool) { return in.remove(list[i].Known, in.at(&list[i])) })
}

// resolve removes indirections, step by step, and lets those look again who wait for whole ranges.
func (w *ImportWorker) resolve(steps int, remove func(in *indirections, i int) (int64, bool)) (n int64, err error) {
	cleared := false
	err = w.indirect(func(in *indirections) {
		for i := range steps {
			some, last := remove(in, i)
			n += some
			cleared = cleared || last
		}
	})
	w.tellCleared(cleared)
	return n, err
}

// tellCleared lets those look again who wait for whole ranges.
func (w *ImportWorker) tellCleared(cleared bool) {
	if cleared {
		w.live.waiting.change(func() {})
	}
}

// Unresolved gives the known bits of about n indirections from a cursor on, and where to go on; 0 is the end.
func (w *ImportWorker) Unresolved(cursor uint64, n int) (places []record.Place, next uint64, err error) {
	err = w.indirect(func(in *indirections) { places, next = in.some(cursor, n) })
	return places, next, err
}

// bytes is the memory that arrivals take beside the log: for indirections, and for names of keys that were removed or asked for
// meanwhile, of which a long one may have many.
func (as *arrivals) bytes() (n int64) {
	all := as.list()
	for i, a := range all {
		n += a.cold.bytes()
		n += a.asked.size()
		if !slices.ContainsFunc(all[:i], func(o *Arrival) bool { return o.removed == a.removed }) { // A restart's are shared by all that follow.
			n += a.removed.size()
		}
	}
	return n
}

// close gives the memory of all back. Nobody uses the store any more.
func (as *arrivals) close() {
	for _, a := range as.list() {
		if a.cold != nil {
			a.cold.ix.Close()
		}
	}
	as.open.Store(nil)
}
