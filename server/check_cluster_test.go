package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/server"
)

func TestEveryWrongClusterSettingIsExplained(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(more ...string) map[string]string {
		flags := map[string]string{"cluster": "etcd://127.0.0.1"}
		for i := 0; i < len(more); i += 2 {
			flags[more[i]] = more[i+1]
		}
		return flags
	}
	for _, c := range []struct {
		flags map[string]string
		want  string
	}{
		{in(), ""},
		{in("bind", "0.0.0.0", "announce-addr", "10.0.0.7"), ""},
		{in("port", "0", "tls-port", "0", "unixsocket", "/x"), "--port is 0, but clients"},
		{map[string]string{"cluster": "http://x"}, "--cluster cannot be used"},
		{map[string]string{"node-id": "n1"}, "--node-id is for a node of a cluster"},
		{map[string]string{"proxy": "yes"}, "--proxy is for a node of a cluster"},
		{map[string]string{"native-port": "70000"}, "--native-port must be from 0 to 65535"},
		{in("node-id", "a b"), "--node-id cannot be used"},
		{in("dir", ""), "--dir is needed by a node of a cluster"},
		{in("durability", "none"), "--durability must be everysec or always in a cluster"},
		{in("memory-policy", "evict"), "--memory-policy cannot be evict in a cluster yet"},
		{in("blob-url", "mem://"), "--blob-url must be a place that all nodes of the cluster reach"},
		{in("port", "60000"), "cluster-port must be from 1 to 65535"},
		{in("cluster-port", "6379"), "--cluster-port must differ from port"},
		{in("bind", "0.0.0.0"), "announce-addr is needed"},
		{in("announce-addr", "host:7"), "--announce-addr takes a host without a port"},
		{in("native-port", "7"), "--native-port is for a server on its own"},
		{in("replication", "magic"), "--replication cannot be set"},
		{in("cluster-secret-file", "/nowhere"), "--cluster-secret-file cannot be read"},
		{in("cluster-secret-file", secret), "--cluster-secret-file holds less than 16 characters"},
		{in("cluster-replicas", "0"), "--cluster-replicas must be from 1 to 9"},
		{in("cluster-min-nodes", "-1"), "--cluster-min-nodes cannot be negative"},
		{in("cluster-lease", "1500ms"), "--cluster-lease must be whole seconds"},
		{in("migrate-partitions", "-1"), "--migrate-partitions must be from 1 to 1024, not -1"},
		{in("migrate-partitions", "0"), "--migrate-partitions must be from 1"},
		{in("migrate-pull-bytes", "0"), "--migrate-pull-bytes must be from 1KiB to 4MiB"},
		{in("migrate-pull-bytes", "8GiB"), "--migrate-pull-bytes must be from 1KiB to 4MiB, not 8GiB"},
	} {
		_, err := server.Load(server.Sources{Flags: c.flags})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.flags, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: want %q, got %v", c.flags, c.want, err)
		}
	}
}
