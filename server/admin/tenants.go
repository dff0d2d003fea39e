package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ostrodb/ostro/tenant"
)

// tenantNode is shared by tenants.
type tenantNode interface{ Tenants() []tenant.Usage }

func ofTenant(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ostro_tenant_"+name, help, []string{"tenant"}, nil)
}

// tenantMetrics carry the label "tenant".
var tenantMetrics = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(u *tenant.Usage) int64
}{
	{ofTenant("bytes", "Bytes that the tenant's records take."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.Bytes }},
	{ofTenant("result_bytes", "Bytes of what is kept of operations of the tenant's clients, so that they run once."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.Results }},
	{ofTenant("keys", "Keys of the tenant."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.Keys }},
	{ofTenant("connections", "Connections of the tenant, native sessions among them."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.Connections }},
	{ofTenant("waiting", "Operations of the tenant that wait for a disk or another node."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.Waiting }},
	{ofTenant("unfinished_bytes", "Bytes that the server holds of unfinished commands and transactions of the tenant's clients."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.Input }},
	{ofTenant("unread_bytes", "Bytes of answers that the tenant's clients have not read."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.Unread }},
	{ofTenant("operations_total", "Operations that the tenant began."), prometheus.CounterValue, func(u *tenant.Usage) int64 { return u.Operations }},
	{ofTenant("refused_total", "What was refused because of the tenant's limits."), prometheus.CounterValue, func(u *tenant.Usage) int64 { return u.Refused }},
	{ofTenant("input_bytes_total", "Bytes received from the tenant's clients."), prometheus.CounterValue, func(u *tenant.Usage) int64 { return u.BytesIn }},
	{ofTenant("function_memory_bytes", "Bytes that instances of the tenant's functions have."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.FunctionMemory }},
	{ofTenant("function_calls", "Calls of the tenant's functions that are in the scheduler."), prometheus.GaugeValue, func(u *tenant.Usage) int64 { return u.FunctionCalls }},
	{ofTenant("function_throttled_total", "Times that the tenant's functions had to wait for their part of the CPU."), prometheus.CounterValue, func(u *tenant.Usage) int64 { return u.FunctionThrottled }},
	{ofTenant("function_refused_total", "Calls of functions, and memory for them, that were refused because of the tenant's limits."), prometheus.CounterValue, func(u *tenant.Usage) int64 { return u.FunctionRefused }},
	{ofTenant("output_bytes_total", "Bytes sent to the tenant's clients."), prometheus.CounterValue, func(u *tenant.Usage) int64 { return u.BytesOut }},
}

var functionSeconds = ofTenant("function_seconds_total", "Time that the tenant's functions ran.")

func collectTenants(out chan<- prometheus.Metric, all []tenant.Usage) {
	for i := range all {
		for _, m := range tenantMetrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.read(&all[i])), all[i].Name)
		}
		ran := time.Duration(all[i].FunctionNanos).Seconds()
		out <- prometheus.MustNewConstMetric(functionSeconds, prometheus.CounterValue, ran, all[i].Name)
	}
}
