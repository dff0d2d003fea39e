package nic

import "github.com/ostrodb/ostro/fabric"

// Totals is what an engine has counted for all its devices, also those that have gone.
type Totals struct {
	fabric.Metrics
	Devices int // attached now
	Streams int // to peers of other engines
}

// Totals asks the engine for its counters.
func (e *Engine) Totals() (t Totals, err error) {
	err = e.do(func() {
		t.Metrics = e.totals
		for _, s := range e.sessions {
			t.Add(s.metrics)
		}
		t.Devices, t.Streams = len(e.sessions), e.poll.links
	})
	return t, err
}
