package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ostrodb/ostro/tenant/sched"
)

// schedNode has functions take turns.
type schedNode interface {
	Scheduler() (sched.Metrics, bool)
}

var schedMetrics = []metric[sched.Metrics]{
	gauge("sched_calls", "Calls of functions that are in the scheduler.", func(m *sched.Metrics) int64 { return m.Turns }),
	gauge("sched_queued", "Of them, those that wait for a worker.", func(m *sched.Metrics) int64 { return m.Queued }),
	gauge("sched_running", "Of them, those that have a worker.", func(m *sched.Metrics) int64 { return m.Running }),
	gauge("sched_waiting", "Of them, those that wait for data.", func(m *sched.Metrics) int64 { return m.Waiting }),
	counter("sched_ended", "Calls that came to their end in the scheduler.", func(m *sched.Metrics) int64 { return m.Ended }),
	counter("sched_long", "Calls that ran for so long that they were set behind the others.", func(m *sched.Metrics) int64 { return m.Long }),
	counter("sched_stolen", "Times that a worker took a call that waited for another worker.", func(m *sched.Metrics) int64 { return m.Stolen }),
	counter("sched_replaced", "Times that the watchdog took the worker from a call that did not come back.", func(m *sched.Metrics) int64 { return m.Replaced }),
	counter("sched_killed", "Calls that were ended: too late, too long, or by someone.", func(m *sched.Metrics) int64 { return m.Killed }),
	counter("sched_throttled", "Times that a tenant's calls had to wait for their part of the CPU.", func(m *sched.Metrics) int64 { return m.Throttled }),
	counter("sched_refused", "Calls that found no room in a queue.", func(m *sched.Metrics) int64 { return m.Refused }),
}

var schedWaits = prometheus.NewDesc("ostro_sched_wait_seconds", "How long calls waited for a worker, each time.", nil, nil)

func collectSched(out chan<- prometheus.Metric, m *sched.Metrics) {
	collect(out, schedMetrics, m)
	sum, buckets := uint64(0), map[float64]uint64{}
	for i, n := range m.Waits {
		sum += uint64(n)
		if i < len(m.Waits)-1 {
			buckets[sched.WaitBound(i).Seconds()] = sum
		}
	}
	out <- prometheus.MustNewConstHistogram(schedWaits, sum, m.Waited.Seconds(), buckets)
}
