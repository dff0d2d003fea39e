package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

// putNumbered writes so many keys.
func putNumbered(t *testing.T, st *store.Store, keys int) {
	t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	for n := range keys {
		k := ss.Key(0, fmt.Append(nil, n))
		if got := attempt(ss, func() store.Status { return ss.Put(&k, store.Write{Value: make([]byte, 100)}, nil) }); got != store.OK {
			t.Fatal(got)
		}
	}
}

// TestWhoDoesNotKnowThatAStoreIsClosedGetsAnAnswer asks while it closes, and afterwards: for its numbers, as those do who watch a
// server, and for what clients have it do in the background who are gone by now.
func TestWhoDoesNotKnowThatAStoreIsClosedGetsAnAnswer(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		st := open(t, o)
		putNumbered(t, st, 1000)
		closed := make(chan struct{})
		var others sync.WaitGroup
		for _, ask := range []func() error{
			func() error { st.Metrics(); return nil },
			func() error { return st.Checkpoint(t.Context()) },
			func() error { return st.Truncate(1) },
			func() error { return st.Swap(1, 2) },
			func() error {
				done := make(chan error, 1)
				st.StartTruncate(3, 0, func(err error) { done <- err })
				return <-done
			},
		} {
			others.Go(func() {
				for over := false; !over; {
					select {
					case <-closed:
						over = true
					default:
					}
					_ = ask() // While it closes it may be told anything.
				}
			})
		}
		if err := st.CloseUnsaved(); err != nil {
			t.Error(err)
		}
		close(closed)
		others.Wait()
		for what, err := range map[string]error{"a checkpoint": st.Checkpoint(t.Context()), "a truncation": st.Truncate(1), "a swap": st.Swap(1, 2)} {
			if !errors.Is(err, store.ErrClosed) && !(what == "a checkpoint" && o.Device == nil && o.Dir == "") {
				t.Errorf("%s of a closed store: %v", what, err)
			}
		}
		if m := st.Metrics(); m.Keys != 1000 || m.SegmentsInMemory != 0 {
			t.Errorf("a closed store has %d keys, and %d segments in memory", m.Keys, m.SegmentsInMemory)
		}
	})
}
