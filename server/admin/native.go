package admin

import "github.com/ostrodb/ostro/server/session"

// nativeNode has a door for native clients.
type nativeNode interface {
	Native() (session.Metrics, bool)
}

var nativeMetrics = []metric[session.Metrics]{
	gauge("native_sessions", "Native sessions open now.", func(m *session.Metrics) int64 { return m.Open }),
	counter("native_sessions_opened", "Native sessions, now and before.", func(m *session.Metrics) int64 { return m.Sessions }),
	counter("native_batches", "Batches of native clients that were accepted.", func(m *session.Metrics) int64 { return m.Batches }),
	counter("native_batches_stale", "Batches that were rejected whole, for they were made for another view.", func(m *session.Metrics) int64 { return m.Stale }),
	counter("native_operations", "Operations of native clients.", func(m *session.Metrics) int64 { return m.Operations }),
	counter("native_operations_waited", "Of them, those that waited alone: for a disk, for room, or for what is being recovered or on its way from another node.", func(m *session.Metrics) int64 { return m.Waited }),
	gauge("native_operations_waiting", "Operations of native clients that wait now.", func(m *session.Metrics) int64 { return m.Waiting }),
	counter("native_operations_moved", "Of them, those that were sent to another node.", func(m *session.Metrics) int64 { return m.Moved }),
	counter("native_operations_repeated", "Of them, those that were answered from what was remembered of their first attempt.", func(m *session.Metrics) int64 { return m.Repeated }),
	counter("native_rounds", "Times that a worker took up what had arrived.", func(m *session.Metrics) int64 { return m.Rounds }),
	counter("native_rounds_held", "Of them, those whose answers waited to become durable.", func(m *session.Metrics) int64 { return m.Held }),
}
