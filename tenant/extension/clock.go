package extension

import (
	"sync/atomic"
	"time"
)

// Clock is a tenant's: in whole milliseconds, and never before what it has told already, whichever of the tenant's functions
// it told that. The zero value is the machine's.
type Clock struct {
	Source func() time.Time // nil: the machine's
	last   atomic.Int64     // the latest time that was told
}

// now is the time in nanoseconds.
func (c *Clock) now() int64 {
	source := c.Source
	if source == nil {
		source = time.Now
	}
	at := source().Truncate(time.Millisecond).UnixNano()
	for {
		last := c.last.Load()
		if at <= last {
			return last
		}
		if c.last.CompareAndSwap(last, at) {
			return at
		}
	}
}
