package store

import "context"

// Adopt placeholder until sides are wired.
func (a *Arrival) Adopt(ctx context.Context) error { return a.settleLog() }
