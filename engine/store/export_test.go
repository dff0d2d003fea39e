package store

import (
	"context"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/hlog"
)

// What other nodes are told.
var (
	ErrMalformedEntry = errMalformedEntry
	ErrNoEntry        = errNoEntry
)

// SendAll sends what all segments at rest have of others' places, whether the cleaner would come to them or not, and asks it to come.
func (st *Store) SendAll(ctx context.Context, owners []Owner) error {
	ss, err := st.NewSession()
	if err != nil {
		return err
	}
	defer ss.Close()
	var segs []*hlog.Segment
	for _, s := range st.log.Segments() {
		if st.log.AtRest(s) && !s.Vacated() {
			segs = append(segs, s)
		}
	}
	for left := segs; len(left) > 0; {
		done, err := ss.sendFrom(ctx, left, owners)
		if err != nil {
			return err
		}
		left = left[len(done):]
	}
	st.room.ask()
	return nil
}

// RandomKey is all steps of RandomKeyFrom.
func (ss *Session) RandomKey(db int, dst []byte) ([]byte, Status) {
	for next := uint64(0); ; {
		key, from, st := ss.RandomKeyFrom(db, next, dst)
		if next = from; next == 0 || st == Cold {
			return key, st
		}
	}
}

// CompletionsOfIndex is Completions of a store that has no notes: it goes through the index.
func (st *Store) CompletionsOfIndex(ctx context.Context, ranges []Range, emit func(entry []byte)) error {
	ss, err := st.NewSession()
	if err != nil {
		return err
	}
	defer ss.Close()
	return ss.givenResults(ctx, ranges, &CompletionOptions{Emit: emit})
}

// LoseNotes is what too many results of others would do.
func (st *Store) LoseNotes(until int64) {
	st.clients.foreign.sweep(1<<63 - 1)
	st.clients.foreign.noteUntold(until)
}

// Sides is how many sides a Flush goes through.
func (a *Arrival) Sides() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.allSides())
}

// TierImpatience sets how long a read waits for a tier where others have copies, for one test.
func TierImpatience(t *testing.T, d time.Duration) {
	was := tierImpatience
	tierImpatience = d
	t.Cleanup(func() { tierImpatience = was })
}
