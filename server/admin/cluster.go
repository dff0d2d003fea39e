package admin

import (
	"time"

	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/replica"
)

// Cluster is what a node of a cluster counts besides.
type Cluster struct {
	Leased      bool          // it may serve
	Lease       time.Duration // for which it may without word from etcd
	Coordinator bool
	View        uint64
	Share       float64 // of all keys, that it owns
	Arriving    float64 // of all keys, that it owns and does not have yet
	Nodes       int     // of the cluster
	Living      int
	Dead        int // that own keys
	Recoveries  int // of the cluster, under way
	Incoming    int // migrations to this node, under way
	Outgoing    int // and from it
	Inherited   int64
	Primary     replica.PrimaryMetrics
	Backup      replica.BackupMetrics
	Peers       peer.Metrics
	Migrate     migrate.Metrics
	Balancer    Balancer
}

type clusterNode interface{ Cluster() (Cluster, bool) }

// million makes an integer of a share; see times.
const million = 1e6

var clusterMetrics = []metric[Cluster]{
	gauge("cluster_leased", "1 while the node's lease lets it serve.", func(m *Cluster) int64 { return one(m.Leased) }),
	gauge("cluster_lease_seconds", "For how long it may serve without word from etcd.", func(m *Cluster) int64 { return max(0, m.Lease.Milliseconds()) }).times(1e-3),
	gauge("cluster_coordinator", "1 while the node is the coordinator.", func(m *Cluster) int64 { return one(m.Coordinator) }),
	gauge("cluster_view", "Number of what the node owns.", func(m *Cluster) int64 { return int64(m.View) }),
	gauge("cluster_owned_ratio", "Share of all keys that the node owns.", func(m *Cluster) int64 { return int64(m.Share * million) }).times(1 / million),
	gauge("cluster_arriving_ratio", "Share of all keys that the node owns and does not serve yet.", func(m *Cluster) int64 { return int64(m.Arriving * million) }).times(1 / million),
	gauge("cluster_nodes", "Nodes of the cluster, dead or alive.", func(m *Cluster) int64 { return int64(m.Nodes) }),
	gauge("cluster_nodes_living", "Nodes that have a lease.", func(m *Cluster) int64 { return int64(m.Living) }),
	gauge("cluster_owners_dead", "Nodes that own keys and have no lease.", func(m *Cluster) int64 { return int64(m.Dead) }),
	gauge("cluster_recoveries", "Recoveries under way.", func(m *Cluster) int64 { return int64(m.Recoveries) }),
	gauge("cluster_migrations_incoming", "Migrations to this node under way.", func(m *Cluster) int64 { return int64(m.Incoming) }),
	gauge("cluster_migrations_outgoing", "Migrations from this node under way.", func(m *Cluster) int64 { return int64(m.Outgoing) }),
	counter("cluster_inherited_records", "Records that this node took over from dead ones.", func(m *Cluster) int64 { return m.Inherited }),

	gauge("copies", "Copies that every segment of this node's log has elsewhere, at least.", func(m *Cluster) int64 { return int64(m.Primary.Copies) }),
	gauge("copies_wanted", "Copies that it shall have.", func(m *Cluster) int64 { return int64(m.Primary.Wanted) }),
	gauge("copies_backups", "Nodes that hold some.", func(m *Cluster) int64 { return int64(m.Primary.Backups) }),
	gauge("copies_thin_segments", "Segments with fewer copies than wanted.", func(m *Cluster) int64 { return int64(m.Primary.Thin) }),
	gauge("copies_waiting_bytes", "Bytes that are not in all copies yet.", func(m *Cluster) int64 { return int64(m.Primary.InFlight) }),
	counter("copies_refused", "Replicas that a backup did not open.", func(m *Cluster) int64 { return int64(m.Primary.Refusals) }),
	counter("copies_replaced", "Copies of open segments that were made elsewhere.", func(m *Cluster) int64 { return int64(m.Primary.Replaced) }),
	counter("copies_restored", "Copies of closed segments that were made anew.", func(m *Cluster) int64 { return int64(m.Primary.Copied) }),
	counter("copies_restored_bytes", "Bytes of them.", func(m *Cluster) int64 { return int64(m.Primary.CopiedBytes) }),

	gauge("backup_logs", "Logs of other nodes that this one has replicas of.", func(m *Cluster) int64 { return int64(m.Backup.Logs) }),
	gauge("backup_replicas", "Replicas of other nodes' segments.", func(m *Cluster) int64 { return int64(m.Backup.Replicas) }),
	gauge("backup_replicas_open", "Of them, those that are written to.", func(m *Cluster) int64 { return int64(m.Backup.OpenReplicas) }),
	gauge("backup_bytes", "Bytes of closed replicas.", func(m *Cluster) int64 { return int64(m.Backup.Bytes) }),
	gauge("backup_buffers_busy", "Buffers in use.", func(m *Cluster) int64 { return int64(m.Backup.BuffersBusy) }),
	gauge("backup_buffers_free", "Buffers that can be opened now.", func(m *Cluster) int64 { return int64(m.Backup.BuffersFree) }),
	counter("backup_opens", "Replicas that were opened.", func(m *Cluster) int64 { return int64(m.Backup.Opens) }),
	counter("backup_refused", "Replicas that were refused for want of room.", func(m *Cluster) int64 { return int64(m.Backup.Refusals) }),
	counter("backup_flushed_bytes", "Bytes of replicas that were written to disk.", func(m *Cluster) int64 { return int64(m.Backup.FlushedBytes) }),
	counter("backup_flush_errors", "Replicas that could not be written to disk at first.", func(m *Cluster) int64 { return int64(m.Backup.FlushErrors) }),
	counter("backup_corrupt", "Replicas that were found to be corrupt.", func(m *Cluster) int64 { return int64(m.Backup.Corrupt) }),
	counter("backup_fetched_bytes", "Bytes that heirs read here.", func(m *Cluster) int64 { return int64(m.Backup.FetchedBytes) }),

	gauge("peer_connections", "Connections of other nodes.", func(m *Cluster) int64 { return int64(m.Peers.Conns) }),
	counter("peer_calls", "Calls of other nodes.", func(m *Cluster) int64 { return int64(m.Peers.Calls) }),
	counter("peer_calls_failed", "Of them, those that were refused.", func(m *Cluster) int64 { return int64(m.Peers.Failed) }),
	counter("peer_unauthorized", "Connections without the secret.", func(m *Cluster) int64 { return int64(m.Peers.Unauthorized) }),
}
