package store

import (
	"context"

	"github.com/ostrodb/ostro/engine/record"
)

// Settle seals all that was written so far and returns when it is as durable as the store promises: in all copies
// of a replicated log. It returns the last batch of that.
func (st *Store) Settle(ctx context.Context) (record.BatchID, error) {
	ss, err := st.NewSession()
	if err != nil {
		return 0, err
	}
	st.log.SealAll()
	last := st.log.Last()
	done := make(chan error, 1)
	go func() {
		defer ss.Close()
		done <- ss.WaitDurable(Ticket{last})
	}()
	select {
	case err := <-done:
		return last, err
	case <-ctx.Done():
		return last, ctx.Err()
	}
}
