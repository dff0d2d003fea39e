package background

import (
	"context"
	"time"
)

// Pause waits for a while, or until ctx is over.
func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
