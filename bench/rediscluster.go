package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
)

// redisCluster is a Redis Cluster on this machine: masters without replicas, nothing on disk.
type redisCluster struct {
	nodes []*target
	ids   []string
	cli   string
}

// redisPrograms finds redis-cli, and says what is missing for a cluster.
func redisPrograms(server string) (cli string, err error) {
	if _, err := exec.LookPath(server); err != nil {
		return "", fmt.Errorf("%s is not installed: install redis-server, or leave Redis out with --redis=false: %w", server, err)
	}
	if cli, err = exec.LookPath("redis-cli"); err != nil {
		return "", fmt.Errorf("redis-cli is not installed: install redis-tools, or leave Redis out with --redis=false: %w", err)
	}
	return cli, nil
}

// startRedisCluster starts masters that share the slots evenly.
func startRedisCluster(ctx context.Context, f serverFlags, nodes int) (*redisCluster, error) {
	cli, err := redisPrograms(f.redisProgram)
	if err != nil {
		return nil, err
	}
	c := &redisCluster{cli: cli}
	for range nodes {
		t, err := startRedisMaster(ctx, f)
		if err != nil {
			c.stop()
			return nil, err
		}
		c.nodes = append(c.nodes, t)
	}
	args := []string{"--cluster", "create"}
	for _, t := range c.nodes {
		args = append(args, t.Addr)
	}
	if _, err := c.run(ctx, append(args, "--cluster-yes")...); err != nil {
		c.stop()
		return nil, err
	}
	for _, t := range c.nodes {
		if err := c.settled(ctx, t.Addr); err != nil {
			c.stop()
			return nil, err
		}
	}
	return c, nil
}

// startRedisMaster starts one; its bus needs the port ten thousand higher, which may be taken.
func startRedisMaster(ctx context.Context, f serverFlags) (*target, error) {
	const tries = 20
	var err error
	for range tries {
		l := redisServer(f.redisProgram, append([]string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"}, strings.Fields(f.redisArgs)...))
		var t *target
		if t, err = l.start(ctx); err == nil {
			return t, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("start a node of a Redis Cluster: %w", err)
}

// settled waits until a node says that the cluster is well.
func (c *redisCluster) settled(ctx context.Context, addr string) error {
	ctl, err := dialControl(addr)
	if err != nil {
		return err
	}
	defer ctl.close()
	id, err := ctl.do("CLUSTER", "MYID")
	if err != nil {
		return err
	}
	c.ids = append(c.ids, id)
	return poll(ctx, "the Redis Cluster does not form", func() error {
		text, err := ctl.do("CLUSTER", "INFO")
		if err == nil && !strings.Contains(text, "cluster_state:ok") {
			err = errors.New(text)
		}
		return err
	})
}

// run runs redis-cli.
func (c *redisCluster) run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, c.cli, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("redis-cli %s: %w: %s", strings.Join(args, " "), err, tailOf(string(out), 400))
	}
	return string(out), nil
}

func tailOf(s string, n int) string { return s[max(0, len(s)-n):] }

// reshard moves slots from one node to another, as people do.
func (c *redisCluster) reshard(ctx context.Context, from, to, slots int) error {
	_, err := c.run(ctx, "--cluster", "reshard", c.nodes[0].Addr, "--cluster-from", c.ids[from], "--cluster-to", c.ids[to],
		"--cluster-slots", strconv.Itoa(slots), "--cluster-yes")
	return err
}

func (c *redisCluster) stop() {
	for _, t := range c.nodes {
		t.stop()
	}
}

func (c *redisCluster) addrs() (all []string) {
	for _, t := range c.nodes {
		all = append(all, t.Addr)
	}
	return all
}

// ownersAt asks a node of either kind of cluster who owns which slot.
func ownersAt(addr string, addrs []string) (owner slotOwners, err error) {
	ctl, err := dialControl(addr)
	if err != nil {
		return owner, err
	}
	defer ctl.close()
	return ownersBy(ctl, addrs)
}

// ownersBy is ownersAt of the node that a connection leads to.
func ownersBy(ctl *control, addrs []string) (owner slotOwners, err error) {
	text, err := ctl.do("CLUSTER", "NODES")
	if err != nil {
		return owner, err
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		at, _, _ := strings.Cut(words[1], "@")
		for i, a := range addrs {
			if sameAddr(a, at) {
				fillOwner(&owner, words[8:], uint8(i))
			}
		}
	}
	return owner, nil
}

func sameAddr(a, b string) bool {
	_, p, _ := net.SplitHostPort(a)
	_, q, _ := net.SplitHostPort(b)
	return p == q
}

func fillOwner(owner *slotOwners, ranges []string, node uint8) {
	for _, g := range ranges {
		low, high, isRange := strings.Cut(g, "-")
		first, err := strconv.Atoi(low)
		if err != nil {
			continue // a slot on its way
		}
		last := first
		if isRange {
			last, _ = strconv.Atoi(high)
		}
		for s := first; s <= last && s < len(owner); s++ {
			owner[s] = node
		}
	}
}
