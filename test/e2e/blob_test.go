package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/engine/device/devicetest"
	"github.com/ostrodb/ostro/test/harness"
)

// blobKeys are about twice as much as the memory of the nodes.
const blobKeys = 10000

func blobValue(i int) string { return fmt.Sprint(i, strings.Repeat(".", 1000)) }

// A cluster of processes with a memory and a disk that are too small for its data, and a real S3 server for the rest.
func TestAClusterKeepsDataBeyondMemoryInS3(t *testing.T) {
	s3 := devicetest.StartS3(t)
	c := harness.StartCluster(t, harness.ClusterOptions{Binary: binary, Nodes: 3, Fabric: "shm", Args: []string{
		"--cluster-lease", calmLease, "--segment-size", "128KiB", "--memory-limit", "2MiB", "--disk-limit", "512KiB", "--blob-url", s3.URL(s3.Address),
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 5*harness.Patience)
	defer cancel()
	resp := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), MaxRedirects: 20, ReadTimeout: 30 * time.Second})
	defer resp.Close()
	writeBlobs(ctx, t, resp)
	for _, n := range c.Nodes {
		if err := harness.Eventually(n.ID+" has segments in the shared tier", func() error {
			if got := gauge(n.Admin, "ostro_segments_blob"); got < 8 {
				return fmt.Errorf("%d", got)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	readBlobs(ctx, t, resp)

	store, err := c.Meta(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.Migrate(ctx, meta.MigrationRequest{Source: "node1", Target: "node2", Ranges: s.Map.Ranges("node1")})
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Eventually("the migration is done", func() error {
		s, err := store.Read(ctx)
		if m = s.Migrations[m.ID]; err == nil && m.Stage != meta.Done {
			err = fmt.Errorf("%+v", m)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if m.Followed.Shared == 0 {
		t.Errorf("nothing came from S3: %+v", m.Followed)
	}
	readBlobs(ctx, t, resp)

	was := s.Nodes["node2"].Log
	c.Nodes[1].Kill()
	if err := harness.Eventually("node2 is recovered, and its part of the bucket is empty", func() error {
		s, err := store.Read(ctx)
		if err != nil || !s.Logs[was].Retired || len(s.Recoveries) > 0 {
			return fmt.Errorf("it is not recovered: %v", err)
		}
		left, err := os.ReadDir(filepath.Join(s3.Dir(), fmt.Sprintf("log-%016x", uint64(was)), "segments"))
		if err == nil && len(left) > 0 {
			return fmt.Errorf("%d segments are left", len(left))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rest := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Nodes[0].Addr, c.Nodes[2].Addr}, MaxRedirects: 20, ReadTimeout: 30 * time.Second})
	defer rest.Close()
	readBlobs(ctx, t, rest)
}

func writeBlobs(ctx context.Context, t *testing.T, c *redis.ClusterClient) {
	t.Helper()
	for i := 0; i < blobKeys; i += 500 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for j := i; j < i+500; j++ {
				p.Set(ctx, fmt.Sprint("blob:", j), blobValue(j), 0)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readBlobs reads one key of ten.
func readBlobs(ctx context.Context, t *testing.T, c *redis.ClusterClient) {
	t.Helper()
	for i := 0; i < blobKeys; i += 1000 {
		var got []*redis.StringCmd
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for j := i; j < i+1000; j += 10 {
				got = append(got, p.Get(ctx, fmt.Sprint("blob:", j)))
			}
			return nil
		})
		for n, g := range got {
			if g.Val() != blobValue(i+10*n) {
				t.Fatalf("key %d is %.20q (%v, %v)", i+10*n, g.Val(), g.Err(), err)
			}
		}
	}
}

// gauge reads a number that a node tells; 0 if it tells none.
func gauge(admin, name string) int {
	r, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	found := regexp.MustCompile(`(?m)^` + name + ` (\d+)$`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}
