package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/engine/store"
)

// Setting is how one field of a Config is known outside of Go. The YAML file,
// the environment, the flags, `ostro config` and the documentation all read
// this one table, so they cannot disagree.
type Setting struct {
	Group  string
	Key    string // in YAML; behind two dashes the flag
	Doc    string // one sentence without a full stop
	Secret bool   // never printed
	Value
}

// Value reads and writes the field. It has the methods of a pflag.Value.
type Value interface {
	String() string
	Set(string) error
	Type() string
}

// Env is the name of the setting's environment variable.
func (s Setting) Env() string {
	return "OSTRO_" + strings.ToUpper(strings.ReplaceAll(s.Key, "-", "_"))
}

// Shown is the value as it may be printed.
func (s Setting) Shown() string {
	if s.Secret && s.String() != "" {
		return "********"
	}
	return s.String()
}

// Settings lists all settings of c in the order in which people read them.
// Setting a Value changes c.
func (c *Config) Settings() []Setting {
	const network, data, memory, functions, cluster, operations = "Network", "Data", "Memory", "Functions", "Cluster", "Operations"
	return []Setting{
		{network, "bind", "addresses to listen on, separated by commas; a leading - means: if this machine has it", false, listValue{&c.Bind}},
		{network, "port", "port for Redis clients; 0 turns it off", false, intValue{&c.Port}},
		{network, "unixsocket", "path of a unix socket for Redis clients; empty: none", false, textValue{&c.UnixSocket}},
		{network, "requirepass", "password that clients must give with AUTH", true, textValue{&c.RequirePass}},
		{network, "protected-mode", "refuse clients from other machines while there is no password", false, boolValue{&c.ProtectedMode}},
		{network, "tls-port", "port for Redis clients over TLS; 0 turns it off", false, intValue{&c.TLSPort}},
		{network, "tls-cert-file", "certificate of the server, PEM", false, textValue{&c.TLSCertFile}},
		{network, "tls-key-file", "private key of the server, PEM", false, textValue{&c.TLSKeyFile}},
		{network, "tls-ca-cert-file", "certificates that sign clients' certificates, PEM", false, textValue{&c.TLSCACertFile}},
		{network, "tls-auth-clients", "whether TLS clients must show a certificate: yes, no, optional; empty: yes if tls-ca-cert-file is set", false, choiceValue{&c.TLSAuthClients, []string{"", "yes", "no", "optional"}}},
		{network, "maxclients", "how many clients may be connected at once", false, intValue{&c.MaxClients}},
		{network, "timeout", "close connections that were idle for so long; 0s: never", false, durationValue{&c.Timeout}},
		{network, "tcp-keepalive", "how often to probe clients that are silent; 0s: never", false, durationValue{&c.TCPKeepAlive}},
		{network, "proto-max-bulk-len", "longest argument of a command", false, parsedValue[Size]{&c.MaxArgument, ParseSize, "size"}},
		{network, "client-query-buffer-limit", "most input that is held for one client", false, parsedValue[Size]{&c.MaxInput, ParseSize, "size"}},
		{network, "client-output-buffer-limit", "most replies that are held for a client that does not read them; 0: no limit", false, parsedValue[Size]{&c.MaxOutput, ParseSize, "size"}},
		{network, "databases", "number of databases that SELECT can choose from", false, intValue{&c.Databases}},
		{network, "loops", "network loops; 0 starts with one and adds more under load, up to the number of CPUs", false, intValue{&c.Loops}},

		{data, "dir", "data directory; empty keeps everything in memory only", false, textValue{&c.Dir}},
		{data, "durability", "what an acknowledged write survives: none, checkpoint, everysec, always", false, parsedValue[store.Durability]{&c.Durability, store.ParseDurability, "mode"}},
		{data, "checkpoint-every", "pause between checkpoints, which bound the time of recovery and are what durability checkpoint keeps; 0s: only on SAVE and, but for none, at the end", false, durationValue{&c.CheckpointEvery}},
		{data, "segment-size", "unit of allocation, flushing and cleaning; a data directory keeps the one it was made with", false, parsedValue[Size]{&c.SegmentSize, ParseSize, "size"}},
		{data, "disk-limit", "how much local disk segments may use that the shared tier also holds; 0: no limit", false, parsedValue[Size]{&c.DiskLimit, ParseSize, "size"}},
		{data, "blob-url", "shared cold tier: file:///path, s3://bucket, azblob://container, gs://bucket", false, textValue{&c.BlobURL}},

		{memory, "memory-limit", "memory for records and index: a size such as 2GB or a share of the machine's such as 75%", false, parsedValue[Budget]{&c.MemoryLimit, ParseBudget, "size"}},
		{memory, "memory-policy", "at the limit: spill to disk, refuse writes, or evict like a cache", false, parsedValue[store.Policy]{&c.MemoryPolicy, store.ParsePolicy, "policy"}},

		{functions, "function-deadline", "how long a call of a function may take, waiting included, before it is ended", false, durationValue{&c.FunctionDeadline}},
		{functions, "function-stealing", "let workers without work take calls of functions that wait for another; off is there to compare", false, boolValue{&c.FunctionStealing}},
		{functions, "function-locality", "let the calls of a tenant's functions begin at one worker; off is there to compare", false, boolValue{&c.FunctionLocality}},

		{cluster, "cluster", "make this server a node of a cluster whose metadata is at etcd://host[:port],.../[name]; empty: a server on its own", false, textValue{&c.Cluster}},
		{cluster, "node-id", "this node's name; empty: one is made and kept in the data directory", false, textValue{&c.NodeID}},
		{cluster, "zone", "where this node stands, such as a rack; copies are spread over zones", false, textValue{&c.Zone}},
		{cluster, "cluster-port", "port for other nodes and for native clients; 0: port + 10000", false, intValue{&c.ClusterPort}},
		{cluster, "announce-addr", "host at which nodes and clients reach this node; empty: the first of bind", false, textValue{&c.AnnounceAddr}},
		{cluster, "fabric", "how memory of other nodes is written: shm:///run/ostro/nic.sock, tcp://host:port, verbs://device, the first that works; empty: tcp in this process", false, textValue{&c.Fabric}},
		{cluster, "replication", "one-sided writes into backups' memory, or rpc, which costs the backups' CPUs and is there to compare", false, choiceValue{&c.Replication, []string{"one-sided", "rpc"}}},
		{cluster, "scatter-width", "how many nodes hold copies of this one's segments at most (copysets): fewer nodes that can lose data together, fewer that help to recover; 0: any", false, intValue{&c.ScatterWidth}},
		{cluster, "hold-up", "how long the machine goes on when the power fails: no more copies wait in memory than the disk takes in that time", false, durationValue{&c.HoldUp}},
		{cluster, "cluster-secret-file", "file with the secret that all nodes share; empty: one that is kept in etcd", false, textValue{&c.ClusterSecretFile}},
		{cluster, "proxy", "forward commands for other nodes' keys, for clients that do not know clusters", false, boolValue{&c.Proxy}},
		{cluster, "native", "serve native clients on the cluster port", false, boolValue{&c.Native}},
		{cluster, "native-port", "port for native clients of a server on its own; 0: none", false, intValue{&c.NativePort}},
		{cluster, "ownership-check", "how a batch of a native client is accepted: by its view, one comparison of integers, or by keys, each looked up, which costs more and is there to compare", false, choiceValue{&c.OwnershipCheck, []string{"views", "keys"}}},
		{cluster, "cluster-replicas", "of a new cluster: how many copies of everything there are, the owner's included", false, intValue{&c.ClusterReplicas}},
		{cluster, "cluster-min-nodes", "of a new cluster: how many nodes must be there before they share the keys; 0: those that come within a few seconds", false, intValue{&c.ClusterMinNodes}},
		{cluster, "cluster-lease", "of a new cluster: how long a silent node counts as alive", false, durationValue{&c.ClusterLease}},
		{cluster, "migrate-pull-bytes", "how much one pull of a migration to this node brings: larger is faster, smaller gets less in the way of clients", false, parsedValue[Size]{&c.MigratePullBytes, ParseSize, "size"}},
		{cluster, "migrate-partitions", "how many parts of a migration to this node are pulled at a time, one after the other each", false, intValue{&c.MigratePartitions}},
		{cluster, "migrate-rate", "how much migrations to this node take in a second at most; 0: no limit", false, parsedValue[Size]{&c.MigrateRate, ParseSize, "size"}},
		{cluster, "migrate-shared-memory", "let a node of the same machine that gives records away write them to this one's memory, and backups there read copies of them, instead of by sockets", false, boolValue{&c.MigrateShared}},
		{cluster, "migrate-halt-dir", "for tests: migrations halt at a step for as long as this directory has a file of its name", false, textValue{&c.MigrateHaltDir}},
		{cluster, "migrate-halt-at", "for tests: migrations to this node halt for good at this step, such as yielded", false, choiceValue{&c.MigrateHaltAt, haltSteps()}},

		{operations, "admin-addr", "where to serve /metrics, /healthz, /readyz and /debug/pprof; empty turns it off", false, textValue{&c.AdminAddr}},
		{operations, "log-level", "debug, info, warn or error", false, choiceValue{&c.LogLevel, []string{"debug", "info", "warn", "error"}}},
		{operations, "log-format", "text or json", false, choiceValue{&c.LogFormat, []string{"text", "json"}}},
		{operations, "slowlog-threshold", "commands that took longer are kept for SLOWLOG; negative: none", false, durationValue{&c.SlowlogThreshold}},
		{operations, "shutdown-timeout", "how long a graceful stop may take", false, durationValue{&c.ShutdownTimeout}},
	}
}

// haltSteps are the names of a migration's steps, and none.
func haltSteps() []string {
	names := []string{""}
	for _, s := range slices.Concat(migrate.Steps, migrate.LateSteps) {
		if !slices.Contains(names, string(s)) {
			names = append(names, string(s))
		}
	}
	return names
}

// Keys lists the names of all settings.
func (c *Config) Keys() []string {
	var keys []string
	for _, s := range c.Settings() {
		keys = append(keys, s.Key)
	}
	return keys
}

type textValue struct{ p *string }

func (v textValue) String() string     { return *v.p }
func (v textValue) Set(s string) error { *v.p = s; return nil }
func (v textValue) Type() string       { return "string" }

type choiceValue struct {
	p       *string
	choices []string
}

func (v choiceValue) String() string { return *v.p }
func (v choiceValue) Type() string   { return "string" }
func (v choiceValue) Set(s string) error {
	s = strings.ToLower(s)
	if !slices.Contains(v.choices, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.TrimPrefix(strings.Join(v.choices, ", "), ", "))
	}
	*v.p = s
	return nil
}

type intValue struct{ p *int }

func (v intValue) String() string { return strconv.Itoa(*v.p) }
func (v intValue) Type() string   { return "int" }
func (v intValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", s)
	}
	*v.p = n
	return nil
}

type boolValue struct{ p *bool }

func (v boolValue) String() string { return strconv.FormatBool(*v.p) }
func (v boolValue) Type() string   { return "bool" }
func (v boolValue) Set(s string) error {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "1":
		*v.p = true
	case "false", "no", "off", "0":
		*v.p = false
	default:
		return fmt.Errorf("%q is neither true nor false", s)
	}
	return nil
}

type durationValue struct{ p *time.Duration }

func (v durationValue) String() string { return trimDuration(v.p.String()) }
func (v durationValue) Type() string   { return "duration" }
func (v durationValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if seconds, numErr := strconv.ParseUint(s, 10, 31); numErr == nil {
		d, err = time.Duration(seconds)*time.Second, nil // as in a redis.conf
	}
	if err != nil {
		return fmt.Errorf("%q is not a duration; write it like 500ms, 30s or 5m", s)
	}
	*v.p = d
	return nil
}

// trimDuration drops the zero parts that time.Duration prints: 5m0s is 5m.
func trimDuration(s string) string {
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

type listValue struct{ p *[]string }

func (v listValue) String() string { return strings.Join(*v.p, ",") }
func (v listValue) Type() string   { return "list" }
func (v listValue) Set(s string) error {
	*v.p = strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

// parsedValue is any type that can be parsed from its own String.
type parsedValue[T fmt.Stringer] struct {
	p     *T
	parse func(string) (T, error)
	kind  string
}

func (v parsedValue[T]) String() string { return (*v.p).String() }
func (v parsedValue[T]) Type() string   { return v.kind }
func (v parsedValue[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err == nil {
		*v.p = parsed
	}
	return err
}
