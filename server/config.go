package server

import (
	"time"

	"github.com/ostrodb/ostro/engine/store"
)

// Config is all that an operator decides about one node. Its settings come,
// each later source over the earlier, from Default, a YAML file, environment
// variables (OSTRO_MEMORY_LIMIT) and flags (--memory-limit); see Load.
//
// How each field is called outside of Go, and what it means there, stands in
// the table of Settings.
type Config struct {
	// Network.
	Bind             []string      // addresses to listen on; one that starts with "-" may be missing on this machine
	Port             int           // for RESP clients; 0 turns the plain port off
	UnixSocket       string        // path of a socket for RESP clients; empty: none
	TLSPort          int           // for RESP clients over TLS; 0: off
	TLSCertFile      string        // PEM
	TLSKeyFile       string        // PEM
	TLSCACertFile    string        // PEM; signs clients' certificates
	TLSAuthClients   string        // yes, no, optional: whether clients must show one; empty: yes if there is a CA file
	RequirePass      string        // password of the default user; empty: none
	ProtectedMode    bool          // without a password, refuse clients from other machines
	MaxClients       int           // connections beyond this are refused
	Timeout          time.Duration // idle connections are closed after this; 0: never
	TCPKeepAlive     time.Duration // how often to probe silent clients; 0: never
	MaxArgument      Size          // longest argument of a command
	MaxInput         Size          // most unexecuted input held for one client
	MaxOutput        Size          // most unread replies held for one client; 0: no limit
	Databases        int           // SELECT 0 to Databases-1
	Loops            int           // network loops; 0: as many as the load needs, up to the number of CPUs
	ShutdownTimeout  time.Duration // how long a graceful stop may take
	SlowlogThreshold time.Duration // commands slower than this go to SLOWLOG; negative: none

	// Data.
	Dir             string           // data directory; empty: memory only
	Durability      store.Durability // what an acknowledged write survives
	CheckpointEvery time.Duration    // pause between checkpoints; 0: only on demand and, but for store.None, at the end
	SegmentSize     Size             // unit of allocation, flushing and cleaning, of a new data directory
	DiskLimit       Size             // bytes of local disk for segments that the shared tier also holds; 0: no limit
	BlobURL         string           // shared cold tier: file://, s3://, azblob://, gs://

	// Memory.
	MemoryLimit  Budget       // for records and index
	MemoryPolicy store.Policy // what happens at the limit

	// Functions.
	FunctionStealing bool          // workers without work take calls of other workers' tenants
	FunctionLocality bool          // a tenant's calls begin at one worker
	FunctionDeadline time.Duration // how long a call may take

	// Cluster.
	Cluster           string        // etcd://host,host/name where the cluster's metadata is; empty: a server on its own
	NodeID            string        // this node's name for as long as its data lives; empty: made once and kept in Dir
	Zone              string        // copies of a segment are spread over zones: a rack, a data centre
	ClusterPort       int           // for other nodes and native clients; 0: Port + 10000
	AnnounceAddr      string        // host at which others reach this node; empty: the first of Bind
	Fabric            string        // URLs of package fabric/provider; empty: tcp, in this process
	Replication       string        // one-sided, rpc
	ScatterWidth      int           // how many nodes hold copies of this one's segments at most; 0: any
	HoldUp            time.Duration // how long the machine goes on when the power fails
	ClusterSecretFile string        // what peers prove themselves with; empty: a secret that is kept in etcd
	Proxy             bool          // forward commands for other nodes' keys instead of sending clients there
	Native            bool          // serve native clients on the cluster port
	NativePort        int           // for native clients of a server on its own; 0: none
	ClusterReplicas   int           // of a new cluster: copies of every segment, the primary's included
	ClusterMinNodes   int           // of a new cluster: how many nodes share the space at first; 0: those that come within seconds
	ClusterLease      time.Duration // of a new cluster: how long a silent node counts as alive
	MigratePullBytes  Size          // how much one pull of a migration brings
	MigratePartitions int           // pulls of a migration that are under way at a time
	MigrateRate       Size          // bytes per second that a migration to this node takes at most; 0: no limit
	MigrateShared     bool          // a source on this machine writes entries to this node's memory
	OwnershipCheck    string        // views, keys: how native sessions find out whether keys are this node's
	MigrateHaltAt     string        // for tests: a step at which migrations to this node halt
	MigrateHaltDir    string        // for tests: where files say at which steps migrations halt

	// Operations.
	AdminAddr string // metrics, health, pprof; empty: off
	LogLevel  string // debug, info, warn, error
	LogFormat string // text, json
}

// Default returns the configuration of `ostro server` without any flag.
func Default() Config {
	return Config{
		Bind:             []string{"127.0.0.1", "-::1"},
		Port:             6379,
		ProtectedMode:    true,
		MaxClients:       10_000,
		TCPKeepAlive:     300 * time.Second,
		MaxArgument:      512 << 20,
		MaxInput:         1 << 30,
		Databases:        16,
		ShutdownTimeout:  30 * time.Second,
		SlowlogThreshold: 10 * time.Millisecond,

		Dir:             "./ostro-data",
		Durability:      store.EverySec,
		CheckpointEvery: 5 * time.Minute,
		SegmentSize:     8 << 20,

		MemoryLimit:  Budget{Percent: 75},
		MemoryPolicy: store.Spill,

		FunctionStealing: true,
		FunctionLocality: true,
		FunctionDeadline: 5 * time.Second,

		Replication:     "one-sided",
		Native:          true,
		OwnershipCheck:  "views",
		ClusterReplicas: 3,
		HoldUp:          10 * time.Second,
		ClusterLease:    2 * time.Second,

		MigratePullBytes:  20 << 10,
		MigratePartitions: 32,
		MigrateShared:     true,

		AdminAddr: "127.0.0.1:9736",
		LogLevel:  "info",
		LogFormat: "text",
	}
}
