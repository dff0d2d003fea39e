package client

import "time"

// SetClock has a client take another clock for that which goes on while the machine sleeps.
func (o *Options) SetClock(now func() time.Duration) { o.now = now }
