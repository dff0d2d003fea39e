package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// backups is how many copies of a write there are besides the primary's.
const backups = 2

// replicatedRedis starts a Redis with two replicas. A client that wants its
// write to be on all of them sends WAIT behind it.
func replicatedRedis(ctx context.Context, f serverFlags) (*target, error) {
	args := append([]string{"--repl-diskless-sync-delay", "0"}, strings.Fields(f.redisArgs)...)
	start := func(more ...string) (*target, error) {
		l := redisServer(f.redisProgram, append(more, args...))
		l.cpus = f.serverCPUs
		return l.start(ctx)
	}
	t, err := start()
	if err != nil {
		return nil, err
	}
	t.Name, t.wait = fmt.Sprintf("redis, WAIT %d", backups), backups
	host, number, _ := strings.Cut(t.Addr, ":")
	for range backups {
		r, err := start("--replicaof", host+" "+number)
		if err != nil {
			t.stop()
			return nil, err
		}
		t.others = append(t.others, r)
	}
	if err := t.waitForReplicas(ctx); err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

// waitForReplicas returns when all replicas follow.
func (t *target) waitForReplicas(ctx context.Context) error {
	c, err := dialControl(t.Addr)
	if err != nil {
		return err
	}
	defer c.close()
	return poll(ctx, "the replicas do not follow", func() error {
		for i := range t.others {
			state, err := c.info("replication", fmt.Sprintf("slave%d", i))
			if err != nil || !strings.Contains(state, "state=online") {
				return fmt.Errorf("replica %d: %q, %w", i, state, err)
			}
		}
		return nil
	})
}

// poll asks until the answer is good.
func poll(ctx context.Context, otherwise string, good func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := good()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, err)
		case <-tick.C:
		}
	}
}

// devCluster is what `ostro cluster dev --json` says of a cluster that is ready.
type devCluster struct {
	Nodes []devNode `json:"nodes"`
	NIC   int       `json:"nicPid"`
	Etcd  string    `json:"etcd"`
}

type devNode struct {
	ID     string `json:"id"`
	Redis  string `json:"redis"`
	Native string `json:"native"`
	Admin  string `json:"admin"`
	Pid    int    `json:"pid"`
}

// cluster is a cluster of this very program, on this machine.
type cluster struct {
	devCluster
	parent *child
	dir    string
}

// startCluster starts a cluster of nodes with their data in a directory of its own. Nothing moves by itself, unless
// args say so: most loads of experiments are uneven on purpose.
func startCluster(ctx context.Context, program string, nodes int, args ...string) (*cluster, error) {
	dir, err := makeDir("")
	if err != nil {
		return nil, fmt.Errorf("make a data directory: %w", err)
	}
	c := &cluster{dir: dir}
	first, err := freeRow(nodes)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.parent, err = startProgram("ostro cluster dev", program, append([]string{
		"cluster", "dev", "--nodes", strconv.Itoa(nodes), "--dir", filepath.Join(dir, "cluster"),
		"--port", strconv.Itoa(first), "--respawn=false", "--balance", "off", "--json",
	}, args...)...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.await(ctx); err != nil {
		c.stop()
		return nil, err
	}
	if len(c.Nodes) != nodes {
		c.stop()
		return nil, fmt.Errorf("the cluster has %d nodes, not %d", len(c.Nodes), nodes)
	}
	return c, ctx.Err()
}

// clusterPatience is how long an empty cluster may take until it is ready.
const clusterPatience = time.Minute

// await returns when the cluster is ready. One that does not become so is ended: it may wait
// for a node that is gone.
func (c *cluster) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	end := context.AfterFunc(ctx, func() { _ = c.parent.signal(syscall.SIGTERM) })
	defer end()
	return c.hear()
}

// hear listens until the cluster is ready.
func (c *cluster) hear() error {
	for {
		var e struct {
			Event   string      `json:"event"`
			Cluster *devCluster `json:"cluster"`
		}
		if err := c.parent.hear(&e); err != nil {
			return err
		}
		if e.Event == "ready" && e.Cluster != nil {
			c.devCluster = *e.Cluster
			return nil
		}
	}
}

// freeRow finds a port for the first node of a cluster, whose other ports lie above
// it: at their own places behind it, and those of nodes and clients of the native
// protocol ten thousand higher. All lie below 32768, from where on Linux takes ports for outgoing
// connections: one of those could come between the look and the start.
func freeRow(nodes int) (int, error) {
	const tries = 100
	for range tries {
		first := 12_000 + rand.IntN(10_000)
		free := true
		for _, from := range []int{first, first + 99, first + 10_000} {
			for port := from; port <= from+nodes && free; port++ {
				l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
				if free = err == nil; free {
					free = l.Close() == nil
				}
			}
		}
		if free {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no row of free ports was found in %d tries", tries)
}

// stop ends all processes and removes the data.
func (c *cluster) stop() {
	if c.parent != nil {
		c.parent.end()
	}
	os.RemoveAll(c.dir)
}

// replicatedOstro is a cluster of three nodes, of which one serves all keys of
// the load and the two others keep its copies.
func replicatedOstro(ctx context.Context, f serverFlags) (*target, error) {
	program, err := f.program()
	if err != nil {
		return nil, err
	}
	c, err := startCluster(ctx, program, 1+backups, f.clusterArgs()...)
	if err != nil {
		return nil, err
	}
	t, err := c.target("ostro", workload.Tag)
	if err != nil {
		c.stop()
		return nil, err
	}
	t.cluster = c
	return t, nil
}

// target is the node that serves all keys with a hash tag.
func (c *cluster) target(name, tag string) (*target, error) {
	owner, err := c.ownerOf(tag)
	if err != nil {
		return nil, err
	}
	return &target{Name: name, Addr: owner.Redis, Pid: owner.Pid, Version: versionOf(owner.Redis)}, nil
}

// ownerOf finds the node that serves keys with a hash tag.
func (c *cluster) ownerOf(tag string) (devNode, error) {
	for _, n := range c.Nodes {
		mine, err := n.serves(tag)
		if mine || err != nil {
			return n, err
		}
	}
	return devNode{}, fmt.Errorf("no node of the cluster serves the keys with {%s}", tag)
}

// serves tells whether keys with a hash tag are the node's.
func (n devNode) serves(tag string) (bool, error) {
	c, err := dialControl(n.Redis)
	if err != nil {
		return false, err
	}
	defer c.close()
	_, err = c.do("GET", "{"+tag+"}")
	var answer replyError
	if errors.As(err, &answer) && strings.HasPrefix(string(answer), "MOVED ") {
		return false, nil
	}
	return err == nil, err
}

// backupCPU is the CPU time of those that keep copies: other processes than the
// one that clients talk to.
func (t *target) backupCPU() (time.Duration, error) {
	var pids []int
	for _, o := range t.others {
		pids = append(pids, o.Pid)
	}
	if c := t.cluster; c != nil {
		for _, n := range c.Nodes {
			if n.Pid != t.Pid {
				pids = append(pids, n.Pid)
			}
		}
		if c.NIC != 0 {
			pids = append(pids, c.NIC)
		}
	}
	var sum time.Duration
	for _, pid := range pids {
		d, err := exactCPUTime(pid)
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}
