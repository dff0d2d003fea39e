package call

import "github.com/ostrodb/ostro/tenant/extension"

// Scheduler gives calls that take longer their turns.
type Scheduler interface {
	// Go runs f on a goroutine of its own when its turn comes, or says that too much waits already.
	Go(s Share, f func(Turn)) error
}

// Share is a tenant's part of the scheduler.
type Share interface {
	// Inline tells whether the tenant may run a call outside of the scheduler now.
	Inline() bool
	// Charge notes nanoseconds that it ran there.
	Charge(nanos int64)
}

// Turn is a call that the scheduler runs.
type Turn interface {
	extension.Turns
	// Wait runs f, which may block, while others have the worker.
	Wait(f func())
}
