package admin

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ostrodb/ostro/tenant/library"
)

// functionNode runs tenants' functions.
type functionNode interface{ Functions() []library.Total }

func ofFunctions(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ostro_function_"+name, help, []string{"tenant"}, nil)
}

// functionMetrics carry the label "tenant". There are none for each function: who can install functions could make
// as many series as it likes.
var functionMetrics = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(t *library.Total) float64
}{
	{ofFunctions("modules", "Modules that the tenant has installed."), prometheus.GaugeValue, func(t *library.Total) float64 { return float64(t.Modules) }},
	{ofFunctions("functions", "Functions that the tenant has installed."), prometheus.GaugeValue, func(t *library.Total) float64 { return float64(t.Functions) }},
	{ofFunctions("code_bytes", "Bytes of the modules that the tenant has installed."), prometheus.GaugeValue, func(t *library.Total) float64 { return float64(t.CodeBytes) }},
	{ofFunctions("modules_ready", "Modules of the tenant that are compiled now."), prometheus.GaugeValue, func(t *library.Total) float64 { return float64(t.Ready) }},
	{ofFunctions("instances", "Instances of the tenant's modules."), prometheus.GaugeValue, func(t *library.Total) float64 { return float64(t.Instances) }},
	{ofFunctions("calls_total", "Calls of the tenant's functions."), prometheus.CounterValue, func(t *library.Total) float64 { return float64(t.Counts.Calls) }},
	{ofFunctions("failures_total", "Calls of the tenant's functions that failed."), prometheus.CounterValue, func(t *library.Total) float64 { return float64(t.Counts.Failures) }},
	{ofFunctions("seconds_total", "Time that calls of the tenant's functions took."), prometheus.CounterValue, func(t *library.Total) float64 { return t.Counts.Time.Seconds() }},
	{ofFunctions("fuel_total", "Fuel that calls of the tenant's functions used."), prometheus.CounterValue, func(t *library.Total) float64 { return float64(t.Counts.Fuel) }},
	{ofFunctions("host_calls_total", "Calls of the host by the tenant's functions."), prometheus.CounterValue, func(t *library.Total) float64 { return float64(t.Counts.HostCalls) }},
	{ofFunctions("reads_total", "Keys that the tenant's functions read."), prometheus.CounterValue, func(t *library.Total) float64 { return float64(t.Counts.Reads) }},
	{ofFunctions("writes_total", "Keys that the tenant's functions wrote."), prometheus.CounterValue, func(t *library.Total) float64 { return float64(t.Counts.Writes) }},
}

// mostTenants is how many tenants have series of their own; what the others do is added up.
const mostTenants = 1000

func collectFunctions(out chan<- prometheus.Metric, all []library.Total) {
	slices.SortFunc(all, func(a, b library.Total) int { return cmp.Compare(a.Tenant, b.Tenant) })
	if len(all) > mostTenants {
		others := library.Total{Tenant: "(others)"}
		for i := mostTenants; i < len(all); i++ {
			others.Add(&all[i])
		}
		all = append(all[:mostTenants:mostTenants], others)
	}
	for i := range all {
		for _, m := range functionMetrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(&all[i]), all[i].Tenant)
		}
	}
}
