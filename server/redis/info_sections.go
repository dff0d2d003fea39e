package redis

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/store"
)

func (s *Server) infoServer(w *infoWriter) {
	now := time.Now()
	up := int64(now.Sub(s.started) / time.Second)
	w.line("redis_version", redisVersion)
	w.line("ostro_version", buildVersion())
	w.line("redis_git_sha1", "00000000")
	w.line("redis_git_dirty", 0)
	w.line("redis_mode", s.mode())
	w.line("os", systemName())
	w.line("arch_bits", strconv.IntSize)
	w.line("multiplexing_api", "epoll")
	w.line("go_version", runtime.Version())
	w.line("process_id", os.Getpid())
	w.line("run_id", s.books.runID())
	w.line("tcp_port", s.port())
	w.line("server_time_usec", now.UnixMicro())
	w.line("uptime_in_seconds", up)
	w.line("uptime_in_days", up/86400)
	w.line("hz", 10)
	w.line("configured_hz", 10)
	w.line("executable", executable())
	w.line("config_file", "")
	w.line("io_threads_active", zeroOne(len(s.Metrics().Loops) > 1))
}

// buildVersion is the module's version as the Go tool recorded it.
func buildVersion() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}

func executable() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

func systemName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return runtime.GOOS
	}
	return fmt.Sprintf("%s %s %s", unix.ByteSliceToString(u.Sysname[:]),
		unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]))
}

func (s *Server) infoClients(w *infoWriter) {
	var in, out int64
	for _, cn := range s.clients.all() {
		in = max(in, cn.queryBytes.Load())
		out = max(out, cn.outputBytes.Load())
	}
	w.line("connected_clients", s.clients.len())
	w.line("cluster_connections", 0)
	w.line("maxclients", s.settings.maxClients.Load())
	w.line("client_recent_max_input_buffer", in)
	w.line("client_recent_max_output_buffer", out)
	w.line("blocked_clients", 0)
	w.line("tracking_clients", 0)
	w.line("clients_in_timeout_table", 0)
}

func (s *Server) infoMemory(w *infoWriter) {
	m, rss := s.store.Metrics(), residentBytes()
	used := m.MemoryBytes
	dataset := min(m.LiveBytes, used-m.IndexBytes) // the rest lies on disk
	peak := s.books.peak.of(used)
	w.bytes("used_memory", used)
	w.bytes("used_memory_rss", rss)
	w.bytes("used_memory_peak", peak)
	w.line("used_memory_peak_perc", fmt.Sprintf("%.2f%%", percentage(used, peak)))
	w.line("used_memory_overhead", used-dataset)
	w.line("used_memory_startup", 0)
	w.line("used_memory_dataset", dataset)
	w.line("used_memory_dataset_perc", fmt.Sprintf("%.2f%%", percentage(dataset, used)))
	w.bytes("total_system_memory", systemMemory())
	w.bytes("maxmemory", m.MemoryLimit)
	w.line("maxmemory_policy", s.memoryPolicy())
	w.ratio("mem_fragmentation_ratio", rss, used)
	w.line("mem_fragmentation_bytes", rss-used)
	w.line("mem_clients_normal", 0)
	w.line("mem_allocator", "ostro")
	w.line("lazyfree_pending_objects", 0)
}

// residentBytes is the process' resident memory; 0 if the system does not tell.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

func systemMemory() int64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return int64(i.Totalram) * int64(i.Unit)
}

func (s *Server) infoPersistence(w *infoWriter) {
	m, saves, writes := s.store.Metrics(), "ok", "ok"
	if s.books.saves.failed.Load() {
		saves = "err"
	}
	if m.Short > 0 {
		writes = "err"
	}
	w.line("loading", 0)
	w.line("async_loading", 0)
	w.line("rdb_changes_since_last_save", 0)
	w.line("rdb_bgsave_in_progress", zeroOne(s.books.saves.running.Load()))
	w.line("rdb_last_save_time", s.lastSave())
	w.line("rdb_last_bgsave_status", saves)
	w.line("rdb_saves", m.Checkpoints)
	w.line("aof_enabled", zeroOne(s.store.Options().Durability >= store.EverySec))
	w.line("aof_rewrite_in_progress", 0)
	w.line("aof_last_bgrewrite_status", "ok")
	w.line("aof_last_write_status", writes)
}

func (s *Server) infoStats(w *infoWriter) {
	m, e := s.Metrics(), s.store.Metrics()
	rate := s.books.rates.update(time.Now(), sample{m.Commands, m.BytesIn, m.BytesOut})
	var errors int64
	for _, n := range s.errorStats() {
		errors += n
	}
	w.line("total_connections_received", m.ConnectionsAccepted)
	w.line("total_commands_processed", m.Commands)
	w.line("instantaneous_ops_per_sec", rate.commands)
	w.line("total_net_input_bytes", m.BytesIn)
	w.line("total_net_output_bytes", m.BytesOut)
	w.ratio("instantaneous_input_kbps", rate.bytesIn, 1024)
	w.ratio("instantaneous_output_kbps", rate.bytesOut, 1024)
	w.line("rejected_connections", m.ConnectionsRejected)
	w.line("sync_full", 0)
	w.line("sync_partial_ok", 0)
	w.line("sync_partial_err", 0)
	w.line("expired_keys", e.Expired)
	w.line("evicted_keys", e.Evicted)
	w.line("evicted_clients", 0)
	w.line("keyspace_hits", e.Hits)
	w.line("keyspace_misses", e.Misses)
	w.line("pubsub_channels", 0)
	w.line("pubsub_patterns", 0)
	w.line("latest_fork_usec", 0)
	w.line("total_forks", 0)
	w.line("total_error_replies", errors)
	w.line("client_query_buffer_limit_disconnections", m.QueryLimitClosed)
	w.line("client_output_buffer_limit_disconnections", m.OutputLimitClosed)
	w.line("acl_access_denied_auth", s.totals.authFailures.Load())
}

func (s *Server) infoReplication(w *infoWriter) {
	w.line("role", "master")
	w.line("connected_slaves", 0)
	w.line("master_failover_state", "no-failover")
	w.line("master_replid", s.books.runID())
	w.line("master_replid2", "0000000000000000000000000000000000000000")
	w.line("master_repl_offset", 0)
	w.line("second_repl_offset", -1)
	w.line("repl_backlog_active", 0)
	w.line("repl_backlog_size", 0)
	w.line("repl_backlog_first_byte_offset", 0)
	w.line("repl_backlog_histlen", 0)
}

func (s *Server) infoCPU(w *infoWriter) {
	for _, who := range []struct {
		name string
		id   int
	}{{"", unix.RUSAGE_SELF}, {"_children", unix.RUSAGE_CHILDREN}} {
		var u unix.Rusage
		_ = unix.Getrusage(who.id, &u) // It fails only for other ids.
		w.line("used_cpu_sys"+who.name, cpuSeconds(u.Stime))
		w.line("used_cpu_user"+who.name, cpuSeconds(u.Utime))
	}
}

func cpuSeconds(t unix.Timeval) string { return fmt.Sprintf("%d.%06d", t.Sec, t.Usec) }

func (s *Server) infoCommandstats(w *infoWriter) {
	for i, st := range s.commandStats() {
		if st.calls == 0 && st.rejected == 0 && st.failed == 0 {
			continue
		}
		micros := st.nanos / 1000
		w.line("cmdstat_"+commandList[i].name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			st.calls, micros, float64(st.nanos)/1000/float64(max(st.calls, 1)), st.rejected, st.failed))
	}
}

func (s *Server) infoErrorstats(w *infoWriter) {
	counts := s.errorStats()
	codes := make([]string, 0, len(counts))
	for code := range counts {
		codes = append(codes, code)
	}
	sort.Strings(codes)
	for _, code := range codes {
		w.line("errorstat_"+code, fmt.Sprintf("count=%d", counts[code]))
	}
}

func (s *Server) infoCluster(w *infoWriter) { w.line("cluster_enabled", zeroOne(s.cfg.Cluster != nil)) }

// mode is how the server runs, in Redis' words.
func (s *Server) mode() string {
	if s.cfg.Cluster != nil {
		return "cluster"
	}
	return "standalone"
}

func (s *Server) infoKeyspace(w *infoWriter) {
	for db := range s.cfg.Databases {
		if keys, expires := s.store.Count(db); keys > 0 {
			w.line("db"+strconv.Itoa(db), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=0", keys, expires))
		}
	}
}

// infoOstro is what Redis has no name for.
func (s *Server) infoOstro(w *infoWriter) {
	m, o := s.store.Metrics(), s.store.Options()
	w.line("durability", o.Durability)
	w.line("memory_policy", o.Policy)
	w.line("index_bytes", m.IndexBytes)
	w.line("log_bytes", m.LogBytes)
	w.line("live_bytes", m.LiveBytes)
	w.line("memory_bytes", m.MemoryBytes)
	w.line("memory_limit", m.MemoryLimit)
	w.line("disk_bytes", m.DiskBytes)
	w.line("segments_in_memory", m.SegmentsInMemory)
	w.line("segments_on_disk", m.SegmentsOnDisk)
	w.line("segments_on_blob", m.SegmentsOnBlob)
	w.line("reads", m.Reads)
	w.line("writes", m.Writes)
	w.line("deletes", m.Deletes)
	w.line("cold_reads", m.ColdReads)
	w.line("syncs", m.Syncs)
	w.line("cleaned_segments", m.CleanedSegments)
	w.line("cleaned_bytes", m.CleanedBytes)
	w.line("relocated_bytes", m.RelocatedBytes)
	w.line("checkpoints", m.Checkpoints)
	w.line("uploaded_segments", m.UploadedSegments)
	w.line("recovery_millis", m.RecoveryMillis)
	if s.cfg.Cluster != nil {
		w.line("redirected", s.totals.redirected.Load())
		w.line("waited_for_recovery", s.totals.waited.Load())
		w.line("lease_closed", s.totals.leaseClosed.Load())
		w.line("forwarded", s.totals.forwarded.Load())
		w.line("forwards_lost", s.totals.forwardsLost.Load())
	}
	for i, l := range s.Metrics().Loops {
		w.line("loop"+strconv.Itoa(i), fmt.Sprintf("clients=%d,rounds=%d,commands=%d,utilisation=%.2f", l.Clients, l.Rounds, l.Commands, l.Utilisation))
	}
}
