package store

import (
	"context"

	"github.com/ostrodb/ostro/engine/record"
)

// Settle seals all that was written so far and returns when it is as durable as the store promises: in all copies
// of a replicated log. It returns the last batch of that. Who asks again and again while copies cannot be made leaves nothing behind.
func (st *Store) Settle(ctx context.Context) (record.BatchID, error) {
	if err := ctx.Err(); err != nil {
		return 0, err // Also if there is nothing to wait for.
	}
	ss, err := st.NewSession()
	if err != nil {
		return 0, err
	}
	defer ss.Close()
	st.log.SealAll()
	last := st.log.Last()
	return last, ss.waitDurable(ctx, Ticket{last})
}
