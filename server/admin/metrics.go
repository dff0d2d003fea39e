package admin

import (
	"net/http"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

func metricsHandler(version string, node Node) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newCollector(version, node),
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// metric says how one number of a Metrics struct is called in Prometheus.
type metric[M any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(m *M) int64
	unit float64 // what one of them is in Prometheus' unit
}

// times returns the metric in another unit.
func (x metric[M]) times(unit float64) metric[M] {
	x.unit = unit
	return x
}

func gauge[M any](name, help string, read func(*M) int64) metric[M] {
	return metric[M]{prometheus.NewDesc("ostro_"+name, help, nil, nil), prometheus.GaugeValue, read, 1}
}

func counter[M any](name, help string, read func(*M) int64) metric[M] {
	return metric[M]{prometheus.NewDesc("ostro_"+name+"_total", help, nil, nil), prometheus.CounterValue, read, 1}
}

var redisMetrics = []metric[redis.Metrics]{
	gauge("clients", "Clients connected now.", func(m *redis.Metrics) int64 { return m.Clients }),
	counter("connections_accepted", "Connections accepted.", func(m *redis.Metrics) int64 { return m.ConnectionsAccepted }),
	counter("connections_rejected", "Connections refused because of maxclients or protected mode.", func(m *redis.Metrics) int64 { return m.ConnectionsRejected }),
	counter("commands", "Commands executed.", func(m *redis.Metrics) int64 { return m.Commands }),
	counter("network_input_bytes", "Bytes received from clients.", func(m *redis.Metrics) int64 { return m.BytesIn }),
	counter("network_output_bytes", "Bytes sent to clients.", func(m *redis.Metrics) int64 { return m.BytesOut }),
	counter("protocol_errors", "Connections closed because they did not speak RESP.", func(m *redis.Metrics) int64 { return m.ProtocolErrors }),
	counter("output_limit_closed", "Connections closed because they did not read their replies.", func(m *redis.Metrics) int64 { return m.OutputLimitClosed }),
	counter("redirected", "Commands answered with MOVED or ASK.", func(m *redis.Metrics) int64 { return m.Redirected }),
	counter("waited_for_recovery", "Commands that waited for a range that was being recovered, or was changing hands in a migration.", func(m *redis.Metrics) int64 { return m.Waited }),
	counter("lease_closed", "Connections closed because the lease ended before their replies left.", func(m *redis.Metrics) int64 { return m.LeaseClosed }),
	counter("forwarded", "Commands that were forwarded to their owners.", func(m *redis.Metrics) int64 { return m.Forwarded }),
	counter("forwards_lost", "Clients closed because nobody knows what became of a forwarded write.", func(m *redis.Metrics) int64 { return m.ForwardsLost }),
	counter("query_limit_closed", "Connections closed because their input was too large.", func(m *redis.Metrics) int64 { return m.QueryLimitClosed }),
}

// loopMetrics carry the label "loop".
var (
	loopClients  = prometheus.NewDesc("ostro_loop_clients", "Clients of each network loop.", []string{"loop"}, nil)
	loopCommands = prometheus.NewDesc("ostro_loop_commands_total", "Commands executed by each network loop.", []string{"loop"}, nil)
	loopRounds   = prometheus.NewDesc("ostro_loop_rounds_total", "Times that each network loop woke up for work.", []string{"loop"}, nil)
	loopBusy     = prometheus.NewDesc("ostro_loop_busy_seconds_total", "Time that each network loop worked.", []string{"loop"}, nil)
)

// replyDesc is a histogram: how long a command took here, see redis.ReplyTimes.
var replyDesc = prometheus.NewDesc("ostro_reply_seconds", "Time from when commands were read until their replies left.", nil, nil)

var (
	buildDesc = prometheus.NewDesc("ostro_build_info", "Which program this is; always 1.", []string{"version", "go"}, nil)
	readyDesc = prometheus.NewDesc("ostro_ready", "1 while clients are served.", nil, nil)
)

// collector turns the parts' Metrics structs into samples when Prometheus asks,
// all of one part from one reading.
type collector struct {
	version string
	node    Node
}

func newCollector(version string, node Node) *collector { return &collector{version, node} }

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	describe(out, storeMetrics)
	describe(out, redisMetrics)
	describe(out, nativeMetrics)
	describe(out, schedMetrics)
	describe(out, callMetrics)
	out <- schedWaits
	out <- functionSeconds
	describe(out, fabricMetrics)
	describe(out, nicMetrics)
	describe(out, replicaMetrics)
	describe(out, clusterMetrics)
	for _, m := range tenantMetrics {
		out <- m.desc
	}
	for _, m := range functionMetrics {
		out <- m.desc
	}
	describe(out, migrateMetrics)
	describe(out, balancerMetrics)
	for _, d := range []*prometheus.Desc{loopClients, loopCommands, loopRounds, loopBusy, replyDesc, buildDesc, readyDesc, migrateStages, migrateEnds, balancerHeld} {
		out <- d
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	sample := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	sample(buildDesc, prometheus.GaugeValue, 1, c.version, runtime.Version())
	ready := 0.0
	if c.node.Phase().Ready {
		ready = 1
	}
	sample(readyDesc, prometheus.GaugeValue, ready)
	if n, has := c.node.(storeNode); has {
		if m, ok := n.Store(); ok {
			collect(out, storeMetrics, &m)
		}
	}
	if n, has := c.node.(redisNode); has {
		if m, ok := n.Redis(); ok {
			collectRedis(out, &m)
		}
	}
	if n, has := c.node.(nativeNode); has {
		if m, ok := n.Native(); ok {
			collect(out, nativeMetrics, &m)
		}
	}
	if n, has := c.node.(callNode); has {
		if m, ok := n.Calls(); ok {
			collect(out, callMetrics, &m)
		}
	}
	if n, has := c.node.(schedNode); has {
		if m, ok := n.Scheduler(); ok {
			collectSched(out, &m)
		}
	}
	if n, has := c.node.(tenantNode); has {
		collectTenants(out, n.Tenants())
	}
	if n, has := c.node.(functionNode); has {
		collectFunctions(out, n.Functions())
	}
	if n, has := c.node.(nicNode); has {
		if m, ok := n.NIC(); ok {
			collect(out, fabricMetrics, &m.Metrics)
			collect(out, nicMetrics, &m)
		}
	}
	if n, has := c.node.(replicaNode); has {
		if m, ok := n.Replica(); ok {
			collect(out, fabricMetrics, &m.Fabric)
			collect(out, replicaMetrics, &m)
		}
	}
	if n, has := c.node.(clusterNode); has {
		if m, ok := n.Cluster(); ok {
			collect(out, clusterMetrics, &m)
			collectMoves(out, &m)
		}
	}
}

func collectRedis(out chan<- prometheus.Metric, m *redis.Metrics) {
	sample := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	collect(out, redisMetrics, m)
	out <- replyHistogram(&m.Replies)
	for i, l := range m.Loops {
		name := strconv.Itoa(i)
		sample(loopClients, prometheus.GaugeValue, float64(l.Clients), name)
		sample(loopCommands, prometheus.CounterValue, float64(l.Commands), name)
		sample(loopRounds, prometheus.CounterValue, float64(l.Rounds), name)
		sample(loopBusy, prometheus.CounterValue, float64(l.BusyNanos)/1e9, name)
	}
}

// replyHistogram counts up to each bound, as Prometheus wants it.
func replyHistogram(t *redis.ReplyTimes) prometheus.Metric {
	upTo := make(map[float64]uint64, redis.ReplyBuckets)
	total := uint64(0)
	for i, n := range t.Counts {
		total += uint64(n)
		if i < redis.ReplyBuckets-1 {
			upTo[redis.ReplyBound(i).Seconds()] = total
		}
	}
	return prometheus.MustNewConstHistogram(replyDesc, total, float64(t.Nanos)/1e9, upTo)
}

func describe[M any](out chan<- *prometheus.Desc, metrics []metric[M]) {
	for _, m := range metrics {
		out <- m.desc
	}
}

func collect[M any](out chan<- prometheus.Metric, metrics []metric[M], m *M) {
	for _, x := range metrics {
		out <- prometheus.MustNewConstMetric(x.desc, x.kind, float64(x.read(m))*x.unit)
	}
}

var storeMetrics = []metric[store.Metrics]{
	gauge("keys", "Keys in all databases.", func(m *store.Metrics) int64 { return m.Keys }),
	gauge("keys_expiring", "Keys with a time to live.", func(m *store.Metrics) int64 { return m.Expires }),
	gauge("index_bytes", "Memory of the index.", func(m *store.Metrics) int64 { return m.IndexBytes }),
	gauge("log_bytes", "Bytes of all segments, wherever they lie.", func(m *store.Metrics) int64 { return m.LogBytes }),
	gauge("live_bytes", "Bytes of records that are their key's newest.", func(m *store.Metrics) int64 { return m.LiveBytes }),
	gauge("memory_bytes", "Memory that counts against the limit.", func(m *store.Metrics) int64 { return m.MemoryBytes }),
	gauge("memory_limit_bytes", "The memory limit.", func(m *store.Metrics) int64 { return m.MemoryLimit }),
	gauge("disk_bytes", "Local disk in use.", func(m *store.Metrics) int64 { return m.DiskBytes }),
	gauge("segments_memory", "Segments in memory.", func(m *store.Metrics) int64 { return m.SegmentsInMemory }),
	gauge("segments_disk", "Segments on local disk only.", func(m *store.Metrics) int64 { return m.SegmentsOnDisk }),
	gauge("segments_short", "1 while no segment can be made, for want of disk or of the machine's memory: writes are refused.", func(m *store.Metrics) int64 { return m.Short }),
	gauge("segments_blob", "Segments in the shared tier only.", func(m *store.Metrics) int64 { return m.SegmentsOnBlob }),
	counter("reads", "Reads of keys.", func(m *store.Metrics) int64 { return m.Reads }),
	counter("hits", "Reads that found their key.", func(m *store.Metrics) int64 { return m.Hits }),
	counter("misses", "Reads of absent keys.", func(m *store.Metrics) int64 { return m.Misses }),
	counter("writes", "Writes of keys.", func(m *store.Metrics) int64 { return m.Writes }),
	counter("deletes", "Deletes of keys.", func(m *store.Metrics) int64 { return m.Deletes }),
	counter("cold_reads", "Reads that had to wait for disk or the shared tier.", func(m *store.Metrics) int64 { return m.ColdReads }),
	counter("expired", "Records that reached their time to live.", func(m *store.Metrics) int64 { return m.Expired }),
	counter("evicted", "Records evicted by the memory limit.", func(m *store.Metrics) int64 { return m.Evicted }),
	counter("batches", "Batches in the log.", func(m *store.Metrics) int64 { return m.Batches }),
	counter("batches_copied", "Batches up to which all are in every copy.", func(m *store.Metrics) int64 { return m.BatchesCopied }),
	gauge("operation_results", "Results of operations that are kept for another attempt.", func(m *store.Metrics) int64 { return m.Results }),
	gauge("expected_places", "Sets of places that the node has, or returns, and of which other nodes' logs are needed still.", func(m *store.Metrics) int64 { return m.Expected }),
	counter("syncs", "Times that the log was made safe from loss of power.", func(m *store.Metrics) int64 { return m.Syncs }),
	counter("cleaned_segments", "Segments that the cleaner freed.", func(m *store.Metrics) int64 { return m.CleanedSegments }),
	counter("cleaned_bytes", "Bytes that the cleaner freed.", func(m *store.Metrics) int64 { return m.CleanedBytes }),
	counter("sent_records", "Records that the cleaner sent to the nodes that own them by now.", func(m *store.Metrics) int64 { return m.Sent }),
	counter("relocated_bytes", "Live bytes that the cleaner copied.", func(m *store.Metrics) int64 { return m.RelocatedBytes }),
	counter("checkpoints", "Checkpoints taken.", func(m *store.Metrics) int64 { return m.Checkpoints }),
	counter("uploaded_segments", "Segments copied to the shared tier.", func(m *store.Metrics) int64 { return m.UploadedSegments }),
	gauge("recovery_seconds", "How long the last recovery took.", func(m *store.Metrics) int64 { return m.RecoveryMillis }).times(1e-3),
}
