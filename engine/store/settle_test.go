package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

// ending is a context that ends as soon as somebody waits for it.
type ending struct {
	context.Context
	end func()
}

func endingSoon(t *testing.T) ending {
	ctx, cancel := context.WithCancel(t.Context())
	return ending{ctx, cancel}
}

func (e ending) Done() <-chan struct{} {
	e.end()
	return e.Context.Done()
}

func TestWhoGivesUpWaitingForALogToSettleLeavesNoSession(t *testing.T) {
	st, copies, sessions := replicated(t, store.Options{})
	ss := sessions[0]
	if err := ss.WaitDurable(putSealed(t, ss, "first", "opens a segment")); err != nil {
		t.Fatal(err)
	}
	copies.Hold()
	putSealed(t, ss, "second", "is not copied")
	for n := range 2000 {
		if _, err := st.Settle(endingSoon(t)); !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d who gave up: %v", n, err)
		}
	}
	copies.Flow()
	if _, err := st.Settle(t.Context()); err != nil {
		t.Error(err)
	}
}
