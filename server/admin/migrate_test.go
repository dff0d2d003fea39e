package admin

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ostrodb/ostro/cluster/migrate"
)

// member is a node of a cluster.
type member struct {
	node
	cluster Cluster
}

func (m *member) Cluster() (Cluster, bool) { return m.cluster, true }

func TestMetricsTellOfMigrationsAndOfTheBalancer(t *testing.T) {
	n := &member{cluster: Cluster{
		Migrate: migrate.Metrics{Waiting: 3, Cold: 25, Totals: migrate.Totals{
			Stages: map[string]int{"pulling": 2, "queued": 0}, AllRecords: 4, AllBytes: 5, Pulls: 6, PriorityPulls: 7, PriorityKeys: 8, ColdShared: 22, ColdAsked: 23, ColdSent: 24,
			Done: 9, Cancelled: 10, Failed: 11,
		}},
		Balancer: Balancer{
			Samples: 12, Decided: 13, Asked: 14, Done: 15, Failed: 16, Ratio: 1.5, Held: map[string]int64{"budget": 17},
			HourBytes: 18, SpentBytes: 19, HourMoves: 20, SpentMoves: 21,
		},
	}}
	_, body := get(n, "/metrics")
	for _, want := range []string{
		`ostro_migrate_moves{stage="pulling"} 2`, `ostro_migrate_moves{stage="queued"} 0`, "ostro_migrate_waiting_keys 3", "ostro_migrate_records_total 4",
		"ostro_migrate_bytes_total 5", "ostro_migrate_pulls_total 6", "ostro_migrate_priority_pulls_total 7", "ostro_migrate_priority_keys_total 8",
		"ostro_migrate_cold_shared_total 22", "ostro_migrate_cold_asked_total 23", "ostro_migrate_cold_sent_total 24", "ostro_migrate_cold_remaining 25",
		`ostro_migrate_ended_total{as="done"} 9`, `ostro_migrate_ended_total{as="cancelled"} 10`, `ostro_migrate_ended_total{as="failed"} 11`,
		"ostro_balancer_samples_total 12", "ostro_balancer_moves_decided_total 13", "ostro_balancer_moves_asked_total 14", "ostro_balancer_moves_done_total 15",
		"ostro_balancer_moves_failed_total 16", "ostro_balancer_ratio 1.5", `ostro_balancer_held_total{reason="budget"} 17`,
		"ostro_balancer_budget_bytes 18", "ostro_balancer_spent_bytes 19", "ostro_balancer_budget_moves 20", "ostro_balancer_spent_moves 21",
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("missing %s", want)
		}
	}
	problems, err := testutil.CollectAndLint(newCollector("x", n))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.Contains(p.Metric, "migrate") || strings.Contains(p.Metric, "balancer") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
