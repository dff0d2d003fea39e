package admin

import "github.com/ostrodb/ostro/server/call"

// callNode runs functions for its front doors.
type callNode interface {
	Calls() (call.Metrics, bool)
}

var callMetrics = []metric[call.Metrics]{
	counter("call_inline", "Calls of functions that ended where they were read.", func(m *call.Metrics) int64 { return m.Inline }),
	counter("call_abandoned", "Attempts of calls that were given up where they were read: they took too long there, or met what is not in memory.", func(m *call.Metrics) int64 { return m.Abandoned }),
	counter("call_scheduled", "Attempts of calls in the scheduler.", func(m *call.Metrics) int64 { return m.Scheduled }),
	counter("call_conflicts", "Attempts that applied nothing, as something they had read was changed meanwhile; they were made again.", func(m *call.Metrics) int64 { return m.Conflicts }),
}
