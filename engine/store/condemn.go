package store

import (
	"errors"
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
}

// condemn relocates what is alive in closed segments and frees their memory.
func (st *Store) condemn(segs ...*hlog.Segment) error {
	if !st.opts.logged() {
		return st.clean(segs...)
	}
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	all, err := st.relocate(segs)
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
		st.condemned[c.seg] = condemned{c, last}
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
	if err := st.bury(now); err != nil {
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
	if err := errors.Join(st.keepSurvivors(), st.dropAtEnd(), st.bury(false)); err != nil {
		st.opts.Logger.Warn("cleaned segments stay until the next start", "segments", len(st.condemned), "error", err)
	}
}

// tierRest is how many times as long as the blob tier took to fail it is left
// alone: writers wait meanwhile for the memory that cleaning frees.
const tierRest = 20

// bury is buryCondemned for the holder of the cleaning lock; with now it syncs
// first. One that cannot be dropped keeps no other.
func (st *Store) bury(now bool) error {
	if now {
		if err := st.keepSurvivors(); err != nil {
			return err
		}
	}
	st.dropCopies()
	var errs []error
	for s, c := range st.condemned {
		began := time.Now()
		if !st.settled(&c) || s.Held() || s.Remote() && began.Before(st.tierAgain) {
			continue
		}
		if err := c.drop(); err == nil {
			delete(st.condemned, s)
			continue
		} else if errs = append(errs, err); s.Remote() {
			st.tierAgain = time.Now().Add(tierRest * time.Since(began))
		}
	}
	return errors.Join(errs...)
}
