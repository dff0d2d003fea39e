package store

import (
	"errors"
	"runtime"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// Writers that are out of memory wait for the cleaner. They need not wait for
// the disk too: a segment whose records live elsewhere gives its memory back at
// once, and is condemned. Its file goes when a sync has made the copies safe
// from loss of power, as the originals were; if the log is copied elsewhere, when
// the copies of it know both. Until then a recovery finds both, which is no harm:
// they are the same records of the same version.

// mostCondemned bounds the files that wait for a sync.
const mostCondemned = 64

// condemned is a cleaned segment whose file waits for a sync.
type condemned struct {
	cleaning
	after record.BatchID // the last batch with copies
	again int64          // when it is tried again, in Unix milliseconds, if it could not be dropped
}

// buryRest is how long a segment that could not be dropped is left alone: the maintenance comes by as often
// as writers ask for room, and on a full disk they ask all the time.
const buryRest = 1000 // ms

// condemn relocates what is alive in closed segments and frees their memory.
func (st *Store) condemn(segs ...*hlog.Segment) error {
	return st.condemnWith(runtime.Gosched, segs...)
}

// condemnWith is condemn; it rests between some entries and the next.
func (st *Store) condemnWith(rest func(), segs ...*hlog.Segment) error {
	if !st.opts.logged() {
		return st.cleanWith(rest, segs...)
	}
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	all, err := st.relocate(rest, segs)
	if err != nil {
		return err
	}
	st.condemnAll(all)
	return nil // The memory is free, and that is what was asked for.
}

// condemnAll condemns segments in which nothing is alive any more.
func (st *Store) condemnAll(all []cleaning) {
	st.log.SealAll()
	last := st.log.Last()
	for _, c := range all {
		st.vacate(c.seg)
		st.condemned[c.seg] = condemned{cleaning: c, after: last}
	}
	st.log.AskSync()
	st.buryOrTell(len(st.condemned) > mostCondemned && st.opts.Replicator == nil) // Else files wait for others.
}

func (st *Store) vacate(s *hlog.Segment) {
	st.keeper.Begin()
	defer st.keeper.End()
	st.log.Vacate(s)
}

// buryCondemned drops the condemned segments whose sync is over.
func (st *Store) buryCondemned() {
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	st.buryOrTell(false)
}

func (st *Store) buryOrTell(now bool) {
	err := st.bury(now)
	if clock := st.opts.Now(); err != nil && clock >= st.buryTold+buryRest {
		st.buryTold = clock
		st.opts.Logger.Error("cleaned segments could not be dropped; it is tried again", "segments", len(st.condemned), "error", err)
	}
}

// buryAll drops all condemned segments; those that cannot be dropped now are
// found and dropped after the next start.
func (st *Store) buryAll() {
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	if len(st.condemned) == 0 {
		return
	}
	st.tierAgain = time.Time{}
	for s, c := range st.condemned {
		c.again = 0
		st.condemned[s] = c
	}
	if err := errors.Join(st.keepSurvivors(), st.dropAtEnd(), st.bury(false)); err != nil {
		st.opts.Logger.Warn("cleaned segments stay until the next start", "segments", len(st.condemned), "error", err)
	}
}

// tierRest is how many times as long as the blob tier took to fail it is left
// alone: writers wait meanwhile for the memory that cleaning frees.
const tierRest = 20

// bury is buryCondemned for the holder of the cleaning lock; with now it syncs
// first, and leaves none alone that could not be dropped before. One that cannot keeps no other.
func (st *Store) bury(now bool) error {
	if now {
		if err := st.keepSurvivors(); err != nil {
			return err
		}
	}
	st.dropCopies()
	var errs []error
	for s, c := range st.condemned {
		began, clock := time.Now(), st.opts.Now()
		if !st.settled(&c) || s.Held() || s.Remote() && began.Before(st.tierAgain) || !now && clock < c.again {
			continue
		}
		err := c.drop()
		if err == nil {
			delete(st.condemned, s)
			continue
		}
		errs = append(errs, err)
		c.again = clock + buryRest
		st.condemned[s] = c
		if s.Remote() {
			st.tierAgain = time.Now().Add(tierRest * time.Since(began))
		}
	}
	return errors.Join(errs...)
}
