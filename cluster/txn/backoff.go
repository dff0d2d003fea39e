package txn

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// backoff waits longer and longer: first it only lets others go before, then it sleeps.
type backoff struct{ tries int }

const (
	yields   = 4
	shortest = 20 * time.Microsecond
	longest  = 2 * time.Millisecond
)

func (b *backoff) wait(ctx context.Context) error {
	b.tries++
	if b.tries <= yields {
		runtime.Gosched()
		return ctx.Err()
	}
	d := min(shortest<<min(b.tries-yields, 10), longest)
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
