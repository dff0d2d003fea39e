package admin

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
)

func TestEveryCounterOfTheFabricAndOfReplicasHasAMetric(t *testing.T) {
	everyCounter(t, func(m fabric.Metrics) *fabric.Metrics { return &m }, fabricMetrics)
	everyCounter(t, func(m group.ReplicaMetrics) *Replica { return &Replica{Health: group.Health{ReplicaMetrics: m}} }, replicaMetrics)
	everyCounter(t, func(m group.ServerMetrics) *Replica { return &Replica{Control: m} }, replicaMetrics)
}

// everyCounter sets each counter of a C in turn, and looks for it.
func everyCounter[C, M any](t *testing.T, in func(C) *M, metrics []metric[M]) {
	t.Helper()
	shape := reflect.TypeFor[C]()
	for i := range shape.NumField() {
		var c C
		reflect.ValueOf(&c).Elem().Field(i).SetUint(77)
		if !shows(metrics, in(c)) {
			t.Errorf("%s.%s has no metric", shape, shape.Field(i).Name)
		}
	}
}

// soft is a node with a NIC and nothing else.
type soft struct{ node }

func (soft) NIC() (nic.Totals, bool) {
	return nic.Totals{Devices: 3, Metrics: fabric.Metrics{RefusedKey: 2}}, true
}

func TestAProcessShowsThePartsThatItHas(t *testing.T) {
	_, text := get(&soft{node{phase: Phase{Name: "serving", Ready: true}}}, "/metrics")
	for _, line := range []string{"ostro_nic_devices 3", "ostro_fabric_refused_key_total 2", "ostro_ready 1"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is not shown", line)
		}
	}
	if strings.Contains(text, "ostro_keys") || strings.Contains(text, "ostro_replica") {
		t.Error("parts are shown that it has not")
	}
}
