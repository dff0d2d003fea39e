package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ostrodb/ostro/cluster/migrate"
)

// Balancer is what a node has done as the coordinator that keeps the cluster even.
type Balancer struct {
	Samples int64
	Decided int64 // moves that it found to be worth it
	Asked   int64 // migrations that it asked for
	Done    int64 // of these, that have come to their end
	Failed  int64 // and that have not
	Held    map[string]int64
	Ratio   float64 // of the fullest node to the average, when it last looked

	HourBytes, SpentBytes int64 // the budget of an hour, and what of it is spent
	HourMoves, SpentMoves int64
}

var migrateMetrics = []metric[migrate.Metrics]{
	gauge("migrate_waiting_keys", "Keys of migrations to this node that operations wait for.", func(m *migrate.Metrics) int64 { return int64(m.Waiting) }),
	counter("migrate_records", "Records that migrations have brought here.", func(m *migrate.Metrics) int64 { return m.AllRecords }),
	counter("migrate_bytes", "Bytes that migrations have brought here.", func(m *migrate.Metrics) int64 { return m.AllBytes }),
	counter("migrate_pulls", "Pulls of this node that were answered.", func(m *migrate.Metrics) int64 { return m.Pulls }),
	counter("migrate_priority_pulls", "Priority pulls of this node that were answered.", func(m *migrate.Metrics) int64 { return m.PriorityPulls }),
	gauge("migrate_cold_remaining", "Cold records of migrations to this node that are still at their sources.", func(m *migrate.Metrics) int64 { return m.Cold }),
	counter("migrate_cold_shared", "Cold records that this node read in the shared tier.", func(m *migrate.Metrics) int64 { return m.ColdShared }),
	counter("migrate_cold_asked", "Cold records that this node asked their source for.", func(m *migrate.Metrics) int64 { return m.ColdAsked }),
	counter("migrate_cold_sent", "Cold records that their source's cleaner sent to this node.", func(m *migrate.Metrics) int64 { return m.ColdSent }),
	counter("migrate_priority_keys", "Keys that priority pulls asked for.", func(m *migrate.Metrics) int64 { return m.PriorityKeys }),
}

var balancerMetrics = []metric[Balancer]{
	counter("balancer_samples", "Times that this node compared the loads of all, as the coordinator.", func(m *Balancer) int64 { return m.Samples }),
	counter("balancer_moves_decided", "Moves that its balancer decided on.", func(m *Balancer) int64 { return m.Decided }),
	counter("balancer_moves_asked", "Migrations that its balancer asked for.", func(m *Balancer) int64 { return m.Asked }),
	counter("balancer_moves_done", "Of these, those that have come to their end.", func(m *Balancer) int64 { return m.Done }),
	counter("balancer_moves_failed", "Of these, those that were cancelled or failed.", func(m *Balancer) int64 { return m.Failed }),
	gauge("balancer_ratio", "How many times the average the fullest node carried when its balancer last looked.", func(m *Balancer) int64 { return int64(m.Ratio * million) }).times(1 / million),
	gauge("balancer_budget_bytes", "Bytes that the balancer may move within an hour.", func(m *Balancer) int64 { return m.HourBytes }),
	gauge("balancer_spent_bytes", "Bytes that it has moved within the last hour.", func(m *Balancer) int64 { return m.SpentBytes }),
	gauge("balancer_budget_moves", "Moves that the balancer may make within an hour.", func(m *Balancer) int64 { return m.HourMoves }),
	gauge("balancer_spent_moves", "Moves that it has made within the last hour.", func(m *Balancer) int64 { return m.SpentMoves }),
}

var (
	migrateStages = prometheus.NewDesc("ostro_migrate_moves", "Migrations to this node under way, by what they do.", []string{"stage"}, nil)
	migrateEnds   = prometheus.NewDesc("ostro_migrate_ended_total", "Migrations to this node that have ended, by how they did.", []string{"as"}, nil)
	balancerHeld  = prometheus.NewDesc("ostro_balancer_held_total", "Samples after which a move that would help was not made, by reason.", []string{"reason"}, nil)
)

// collectMoves tells of migrations and of the balancer.
func collectMoves(out chan<- prometheus.Metric, m *Cluster) {
	sample := func(d *prometheus.Desc, kind prometheus.ValueType, v int64, label string) {
		out <- prometheus.MustNewConstMetric(d, kind, float64(v), label)
	}
	collect(out, migrateMetrics, &m.Migrate)
	collect(out, balancerMetrics, &m.Balancer)
	for stage, n := range m.Migrate.Stages {
		sample(migrateStages, prometheus.GaugeValue, int64(n), stage)
	}
	sample(migrateEnds, prometheus.CounterValue, m.Migrate.Done, "done")
	sample(migrateEnds, prometheus.CounterValue, m.Migrate.Cancelled, "cancelled")
	sample(migrateEnds, prometheus.CounterValue, m.Migrate.Failed, "failed")
	for why, n := range m.Balancer.Held {
		sample(balancerHeld, prometheus.CounterValue, n, why)
	}
}
