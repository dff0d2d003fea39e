package server

import (
	"net"
	"os"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// clusterOnly are settings that a server on its own has no use for.
var clusterOnly = []string{"node-id", "zone", "cluster-port", "announce-addr", "fabric", "scatter-width", "hold-up", "cluster-secret-file", "proxy", "cluster-min-nodes"}

func (c *Config) checkCluster(wrong complain) {
	if c.NativePort < 0 || c.NativePort > 65535 {
		wrong("native-port", "must be from 0 to 65535, not %d", c.NativePort)
	}
	if c.Cluster == "" {
		c.checkAlone(wrong)
		return
	}
	if _, err := meta.ParseURL(c.Cluster); err != nil {
		wrong("cluster", "cannot be used: %s", err)
	}
	if c.NodeID != "" {
		if err := view.NodeID(c.NodeID).Check(); err != nil {
			wrong("node-id", "cannot be used: %s", err)
		}
	}
	c.checkClusterNetwork(wrong)
	c.checkClusterData(wrong)
	if c.ClusterSecretFile != "" {
		if text, err := os.ReadFile(c.ClusterSecretFile); err != nil {
			wrong("cluster-secret-file", "cannot be read: %s", err)
		} else if len(strings.TrimSpace(string(text))) < 16 {
			wrong("cluster-secret-file", "holds less than 16 characters; write a longer secret into %s", c.ClusterSecretFile)
		}
	}
	if c.ClusterReplicas < 1 || c.ClusterReplicas > 9 {
		wrong("cluster-replicas", "must be from 1 to 9, not %d", c.ClusterReplicas)
	}
	if c.ScatterWidth != 0 && c.ScatterWidth < c.ClusterReplicas-1 {
		wrong("scatter-width", "must be 0, or at least %d for %d copies, not %d", c.ClusterReplicas-1, c.ClusterReplicas, c.ScatterWidth)
	}
	if c.HoldUp <= 0 {
		wrong("hold-up", "must be positive, not %s", c.HoldUp)
	}
	if c.ClusterMinNodes < 0 {
		wrong("cluster-min-nodes", "cannot be negative")
	}
	if c.ClusterLease < time.Second || c.ClusterLease > time.Hour || c.ClusterLease%time.Second != 0 {
		wrong("cluster-lease", "must be whole seconds, from 1s on, not %s", c.ClusterLease)
	}
	if c.MigratePartitions < 1 || c.MigratePartitions > 1024 {
		wrong("migrate-partitions", "must be from 1 to 1024, not %d", c.MigratePartitions)
	}
	if c.MigratePullBytes < 1<<10 || c.MigratePullBytes > 4<<20 {
		wrong("migrate-pull-bytes", "must be from 1KiB to 4MiB, not %s", c.MigratePullBytes)
	}
}

// checkAlone finds settings of a cluster where none was named.
func (c *Config) checkAlone(wrong complain) {
	plain := Default()
	byKey := map[string]string{}
	for _, s := range plain.Settings() {
		byKey[s.Key] = s.String()
	}
	for _, s := range c.Settings() {
		for _, key := range clusterOnly {
			if s.Key == key && s.String() != byKey[key] {
				wrong(key, "is for a node of a cluster; name the cluster with cluster: etcd://...")
			}
		}
	}
}

func (c *Config) checkClusterNetwork(wrong complain) {
	if c.Port == 0 && c.TLSPort == 0 {
		wrong("port", "is 0, but clients that ask another node are sent to this one's; set port or tls-port")
	}
	switch p := c.clusterPort(); {
	case c.ClusterPort < 0 || p > 65535:
		wrong("cluster-port", "must be from 1 to 65535; it is port + 10000 = %d unless you set it", p)
	case p == c.Port || p == c.TLSPort:
		wrong("cluster-port", "must differ from port and tls-port, it is %d", p)
	}
	if c.NativePort != 0 {
		wrong("native-port", "is for a server on its own; a node of a cluster serves native clients on its cluster-port")
	}
	if strings.ContainsAny(c.AnnounceAddr, "/ ") || net.ParseIP(c.AnnounceAddr) == nil && strings.Contains(c.AnnounceAddr, ":") {
		wrong("announce-addr", "takes a host without a port, not %q", c.AnnounceAddr)
	}
	if c.announceHost() == "" {
		wrong("announce-addr", "is needed, as bind names every network; set it to the address at which other nodes and clients reach this one")
	}
}

func (c *Config) checkClusterData(wrong complain) {
	if c.Dir == "" {
		wrong("dir", "is needed by a node of a cluster, which keeps its log and others' copies there")
	}
	if c.Durability < store.EverySec {
		wrong("durability", "must be everysec or always in a cluster, not %s: copies are made of the log", c.Durability)
	}
	if c.MemoryPolicy == store.Evict {
		wrong("memory-policy", "cannot be evict in a cluster yet: use spill or refuse")
	}
	if strings.HasPrefix(c.BlobURL, "mem:") {
		wrong("blob-url", "must be a place that all nodes of the cluster reach, not %q: use file:// with a shared folder, s3://, azblob:// or gs://", c.BlobURL)
	}
}

// clusterPort is where other nodes come in.
func (c *Config) clusterPort() int {
	switch {
	case c.ClusterPort != 0:
		return c.ClusterPort
	case c.Port != 0:
		return c.Port + 10000
	}
	return c.TLSPort + 10000
}

// announceHost is where others reach this node; empty if only the operator can know.
func (c *Config) announceHost() string {
	if c.AnnounceAddr != "" {
		return c.AnnounceAddr
	}
	for _, host := range c.Bind {
		host = strings.TrimPrefix(host, "-")
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() || host == "*" || host == "" {
			continue
		}
		return host
	}
	return ""
}
