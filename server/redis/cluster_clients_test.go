package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

// clusterClient knows one node and finds the others.
func (tw *town) clusterClient(t *testing.T, proto int) *goredis.ClusterClient {
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{tw.nodes[0].addr}, Protocol: proto, MaxRedirects: 100, ReadTimeout: patience})
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func TestGoRedisClusterClientUsesTheWholeCluster(t *testing.T) {
	tw := newTown(t, 3, redis.Config{})
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", proto), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := tw.clusterClient(t, proto)
			for i := range 300 {
				must(t, c.Set(ctx, "key:"+strconv.Itoa(i), i, 0).Err())
			}
			for i := range 300 {
				if got := c.Get(ctx, "key:"+strconv.Itoa(i)).Val(); got != strconv.Itoa(i) {
					t.Fatalf("key %d holds %q", i, got)
				}
			}
			cmds, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
				for i := range 300 {
					p.Incr(ctx, "key:"+strconv.Itoa(i))
				}
				return nil
			})
			must(t, err)
			for i, cmd := range cmds {
				if n := cmd.(*goredis.IntCmd).Val(); n != int64(i+1) {
					t.Fatalf("key %d was raised to %d", i, n)
				}
			}
			_, err = c.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Set(ctx, "{tag}a", "1", 0)
				p.Set(ctx, "{tag}b", "2", 0)
				return nil
			})
			must(t, err)
			must(t, c.Watch(ctx, func(tx *goredis.Tx) error {
				_, err := tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
					p.Append(ctx, "{tag}a", "x")
					return nil
				})
				return err
			}, "{tag}a"))
			if got := c.MGet(ctx, "{tag}a", "{tag}b").Val(); fmt.Sprint(got) != "[1x 2]" {
				t.Errorf("MGET: %v", got)
			}
			n, err := c.DBSize(ctx).Result() // of all nodes
			if err != nil || n != 302 {
				t.Errorf("DBSIZE: %d, %v", n, err)
			}
			shards, err := c.ClusterShards(ctx).Result()
			if err != nil || len(shards) != 3 || shards[0].Nodes[0].Health != "online" || len(shards[0].Slots) != 1 {
				t.Errorf("CLUSTER SHARDS: %+v, %v", shards, err)
			}
			links, err := c.ClusterLinks(ctx).Result()
			if err != nil || len(links) != 0 {
				t.Errorf("CLUSTER LINKS: %+v, %v", links, err)
			}
			must(t, c.ForEachMaster(ctx, func(ctx context.Context, n *goredis.Client) error { return n.FlushAll(ctx).Err() }))
		})
	}
}

// Counters go up while their slots change hands: not one step is lost or taken twice.
func TestNoWriteIsLostWhileOwnershipChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	tw := newTown(t, 3, redis.Config{Loops: 2})
	c := tw.clusterClient(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const counters, moves = 40, 60
	var stop atomic.Bool
	var wg sync.WaitGroup
	var counts [counters]atomic.Int64
	for w := range 4 {
		own := rand.New(rand.NewPCG(seed, uint64(w+1)))
		wg.Go(func() {
			for !stop.Load() {
				i := own.IntN(counters)
				if err := c.Incr(ctx, "counter:"+strconv.Itoa(i)).Err(); err != nil {
					t.Errorf("INCR: %v", err)
					return
				}
				counts[i].Add(1)
			}
		})
	}
	for range moves {
		key := "counter:" + strconv.Itoa(r.IntN(counters))
		from := tw.owner(key)
		before := counts[0].Load()
		tw.move(slotRanges(key), from, (from+1+r.IntN(2))%3)
		await.True(t, "writers go on", func() bool { return counts[0].Load() > before || t.Failed() })
	}
	stop.Store(true)
	wg.Wait()
	for i := range counts {
		got, err := c.Get(ctx, "counter:"+strconv.Itoa(i)).Int64()
		if want := counts[i].Load(); got != want || err != nil && !errors.Is(err, goredis.Nil) {
			t.Errorf("counter %d is %d after %d steps, %v", i, got, want, err)
		}
	}
}

// tool runs a program of Redis' against a node.
func tool(t *testing.T, name, addr string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("this test uses %s: install the package redis-tools", name)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, append([]string{"-h", host, "-p", port}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestRedisCLIFollowsTheCluster(t *testing.T) {
	tw := newTown(t, 3, redis.Config{})
	for i := range 30 {
		key, from := "key:"+strconv.Itoa(i), tw.nodes[i%3].addr
		if got := tool(t, "redis-cli", from, "-c", "set", key, "v"+strconv.Itoa(i)); !strings.HasSuffix(got, "OK\n") {
			t.Fatalf("set %s: %q", key, got)
		}
		if got := tool(t, "redis-cli", tw.nodes[(i+1)%3].addr, "-c", "get", key); !strings.HasSuffix(got, "v"+strconv.Itoa(i)+"\n") {
			t.Fatalf("get %s: %q", key, got)
		}
	}
	if got := tool(t, "redis-cli", tw.nodes[0].addr, "--cluster", "check", tw.nodes[0].addr); !strings.Contains(got, "All 16384 slots covered") {
		t.Errorf("redis-cli --cluster check says:\n%s", got)
	}
	// A slot on its way: redis-cli asks where it is told to.
	key := tw.keyOf(0, 0)
	tw.publish(func() {
		tw.nodes[0].state.Exporting = []redis.Migration{{Ranges: slotRanges(key), Node: "n2"}}
		tw.nodes[1].state.Importing = []redis.Migration{{Ranges: slotRanges(key), Node: "n1"}}
	})
	if got := tool(t, "redis-cli", tw.nodes[0].addr, "-c", "incr", sibling(key)); !strings.HasSuffix(got, "1\n") {
		t.Errorf("incr of a key that has gone: %q", got)
	}
}

func TestRedisBenchmarkRunsAgainstTheCluster(t *testing.T) {
	tw := newTown(t, 3, redis.Config{})
	out := tool(t, "redis-benchmark", tw.nodes[0].addr, "--cluster", "-t", "set,get,mset", "-n", "3000", "-r", "1000", "-c", "6", "-P", "8", "-q")
	for _, want := range []string{"Cluster has 3 master nodes", "SET:", "GET:"} {
		if !strings.Contains(out, want) {
			t.Fatalf("redis-benchmark says nothing of %q:\n%s", want, out)
		}
	}
	for i, n := range tw.nodes {
		if keys, _ := n.st.Count(0); keys == 0 {
			t.Errorf("node %d got no keys", i)
		}
	}
}

func TestEveryNodeTellsTheSameOfTheCluster(t *testing.T) {
	tw := newTown(t, 3, redis.Config{})
	tw.give(view.RangesOf(view.SlotsRange(100, 100), view.SlotsRange(300, 310)), "n3")
	var ids []string
	var slots, lines []string
	for i := range tw.nodes {
		c := tw.dial(i)
		ids = append(ids, ask(t, c, "cluster", "myid"))
		r, err := c.do("cluster", "slots")
		must(t, err)
		slots = append(slots, r.raw)
		text := strings.ReplaceAll(ask(t, c, "cluster", "nodes"), "myself,", "")
		lines = append(lines, text)
		if got := ask(t, c, "cluster", "keyslot", "foo"); got != "12182" {
			t.Errorf("KEYSLOT: %s", got)
		}
		info := ask(t, c, "cluster", "info")
		for _, want := range []string{"cluster_state:ok", "cluster_slots_assigned:16384", "cluster_known_nodes:3", "cluster_size:3"} {
			if !strings.Contains(info, want) {
				t.Errorf("CLUSTER INFO lacks %s:\n%s", want, info)
			}
		}
		if got := ask(t, c, "info", "cluster"); !strings.Contains(got, "cluster_enabled:1") {
			t.Errorf("INFO: %s", got)
		}
		if got := ask(t, c, "cluster", "replicas", ids[0]); got != "0" {
			t.Errorf("REPLICAS: %s", got)
		}
		if got := ask(t, c, "cluster", "count-failure-reports", "x"); got != "ERR Unknown node x" {
			t.Errorf("COUNT-FAILURE-REPORTS: %s", got)
		}
		if got := ask(t, c, "cluster", "meet", "127.0.0.1", "1"); !strings.Contains(got, "ostro server --cluster") {
			t.Errorf("MEET: %s", got)
		}
		if got := ask(t, c, "wait", "2", "0"); got != "2" {
			t.Errorf("WAIT: %s", got)
		}
		if got := ask(t, c, "readonly"); got != "OK" {
			t.Errorf("READONLY: %s", got)
		}
		if got := ask(t, c, "config", "get", "cluster-enabled"); got != "2" {
			t.Errorf("CONFIG GET: %s", got)
		}
		hello, err := c.do("hello", "3")
		must(t, err)
		if at := slices.IndexFunc(hello.items, func(r *reply) bool { return r.text == "mode" }); hello.items[at+1].text != "cluster" {
			t.Errorf("HELLO: %+v", hello)
		}
	}
	if ids[0] == ids[1] || len(ids[0]) != 40 {
		t.Errorf("ids are %q", ids)
	}
	if slots[0] != slots[1] || slots[1] != slots[2] || lines[0] != lines[1] || lines[1] != lines[2] {
		t.Errorf("nodes differ:\n%q\n%q", slots, lines)
	}
	for _, want := range []string{" 0-99 101-299 311-5460\n", " 100 300-310 "} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("CLUSTER NODES lacks %q:\n%s", want, lines[0])
		}
	}
}

func TestAServerOnItsOwnSaysSo(t *testing.T) {
	theirs, ours := dialRaw(t, startRedis(t)), dialRaw(t, startOstro(t, redis.Config{}))
	for _, args := range [][]string{
		{"cluster", "slots"},
		{"cluster", "info"},
		{"cluster", "help"},
		{"cluster", "keyslot", "a"},
		{"cluster", "nosuch"},
		{"cluster"},
		{"cluster", "meet", "a", "1"},
		{"asking"},
		{"readonly"},
		{"readwrite"},
		{"cluster", "keyslot"},
		{"cluster", "addslots"},
	} {
		if got, want := ask(t, ours, args...), ask(t, theirs, args...); got != want {
			t.Errorf("%q answers %q, Redis %q", args, got, want)
		}
	}
}
