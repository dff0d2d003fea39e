package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/server"
)

// devFlags are what a developer decides about a cluster on one machine.
type devFlags struct {
	nodes       int
	dir         string
	port        int
	replication string
	fabric      string
	realtime    int
	respawn     bool
	proxy       bool
	balance     string
	lease       time.Duration
	logLevel    string
	set         []string // settings of the nodes, key=value
	json        bool
	given       func(string) bool // whether a flag was given
}

func newClusterDev() *cobra.Command {
	f := &devFlags{}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster on this machine",
		Long: `Run a whole cluster on this machine until SIGINT or SIGTERM: nodes, a soft NIC
that carries copies between them, and an etcd within this process.

All of it lives in one directory, and the next start goes on with it, whatever
ended the last one. A node that dies is replaced by the others and started again;
a new one joins with ` + "`ostro cluster add`" + `.

It is for development: one machine is one machine. For a real cluster run
` + "`ostro server --cluster etcd://...`" + ` on each of several.`,
		Example: `  ostro cluster dev --nodes 4
  ostro cluster dev --nodes 3 --dir /tmp/c --port 7300
  ostro cluster dev --replication rpc               copies made by the backups' CPUs, to compare
  ostro cluster dev --fabric tcp                    no NIC process
  ostro cluster dev --respawn=false                 a node that dies stays dead
  ostro cluster dev --set memory-limit=256MB        a setting of ` + "`ostro server`" + `, for all nodes
  ostro cluster dev --json                          events for machines, one a line`,
		Args: takes(0, 0, "no arguments; the number of nodes is given with --nodes"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given = cmd.Flags().Changed
			return runClusterDev(f)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().IntVar(&f.nodes, "nodes", 4, "how many nodes; a cluster that is there keeps those that it has")
	cmd.Flags().StringVar(&f.dir, "dir", defaultClusterDir, "directory of the cluster")
	cmd.Flags().IntVarP(&f.port, "port", "p", 7000, "port of the first node for Redis clients; the others follow")
	cmd.Flags().StringVar(&f.replication, "replication", "one-sided", "one-sided, or rpc to compare")
	cmd.Flags().StringVar(&f.fabric, "fabric", "auto", "shm (through a NIC process), tcp, or auto: shm if it works")
	cmd.Flags().IntVar(&f.realtime, "nic-realtime", 0, "real-time priority of the NIC from 1 to 99; 0 is none")
	cmd.Flags().BoolVar(&f.respawn, "respawn", true, "start a node again that died")
	cmd.Flags().BoolVar(&f.proxy, "proxy", false, "let every node answer for all keys, for clients that do not know clusters")
	cmd.Flags().StringVar(&f.balance, "balance", "", "auto, dry-run or off: what the balancer does, with its default settings; as it was if not given, and auto at first")
	cmd.Flags().DurationVar(&f.lease, "lease", 2*time.Second, "of a new cluster: how long a silent node counts as alive")
	cmd.Flags().StringVar(&f.logLevel, "log-level", "info", "of the nodes: debug, info, warn or error")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "a setting of the nodes as key=value, such as memory-limit=256MB; see ostro server --help")
	cmd.Flags().BoolVar(&f.json, "json", false, "print events as JSON, one a line")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func (f *devFlags) check() error {
	switch {
	case f.nodes < 1 || f.nodes > mostDevNodes:
		return usagef("--nodes is %d; it is from 1 to %d", f.nodes, mostDevNodes)
	case f.port < 1 || f.port+nativeOffset+mostDevNodes > 65535:
		return usagef("--port is %d; it is from 1 to %d, for other ports lie up to %d above it", f.port, 65535-nativeOffset-mostDevNodes, nativeOffset+mostDevNodes)
	case f.replication != "one-sided" && f.replication != "rpc":
		return usagef("--replication is %q; it is one-sided or rpc", f.replication)
	case !slices.Contains([]string{"auto", "shm", "tcp"}, f.fabric):
		return usagef("--fabric is %q; it is auto, shm or tcp", f.fabric)
	case !slices.Contains([]string{"", "auto", "dry-run", "off"}, f.balance):
		return usagef("--balance is %q; it is auto, dry-run or off", f.balance)
	case f.realtime < 0 || f.realtime > 99:
		return usagef("--nic-realtime is %d; it is a priority from 1 to 99, or 0 for none", f.realtime)
	case f.lease < time.Second || f.lease%time.Second != 0:
		return usagef("--lease is %s; it is whole seconds, from 1s on", f.lease)
	}
	return f.checkSettings()
}

// checkSettings finds mistakes in what nodes are told here, and not in the logs of nodes that do not start.
func (f *devFlags) checkSettings() error {
	c := server.Default()
	told := map[string]string{
		"cluster": "etcd://127.0.0.1", "port": strconv.Itoa(f.port), "log-level": f.logLevel,
		"cluster-replicas": strconv.Itoa(f.copies(f.nodes)), "cluster-lease": f.lease.String(),
	}
	for _, text := range f.set {
		key, value, ok := strings.Cut(text, "=")
		if !ok || !slices.ContainsFunc(c.Settings(), func(s server.Setting) bool { return s.Key == key }) {
			return usagef("--set %s: write it as key=value, with a setting that `ostro server --help` lists", text)
		}
		told[key] = value
	}
	_, err := server.Load(server.Sources{Flags: told})
	return err
}

// copies is how many there are of everything in a new cluster, unless --set says so.
func (f *devFlags) copies(nodes int) int { return min(3, nodes) }

func runClusterDev(f *devFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	ctx, cancel := untilSignal()
	defer cancel()
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	lock, err := lockClusterDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	state, err := f.stateIn(dir)
	if err != nil {
		return err
	}
	d := &devCluster{flags: f, dir: dir, state: state, killed: state.PID != 0, out: newDevVoice(f.json)}
	return d.run(ctx)
}

// stateIn is the cluster that is in dir, or a new one, as the flags want it.
func (f *devFlags) stateIn(dir string) (clusterState, error) {
	old, err := readClusterState(dir)
	var usage usageError
	switch {
	case errors.As(err, &usage): // There is none.
		old = clusterState{Port: f.port}
	case err != nil:
		return old, err
	}
	s := clusterState{PID: old.PID, Port: old.Port, Replication: f.replication, Fabric: f.fabric}
	if f.given("port") {
		s.Port = f.port
	}
	nodes := f.nodes
	switch {
	case !f.given("nodes") && len(old.Nodes) > 0:
		nodes = len(old.Nodes)
	case f.nodes < len(old.Nodes):
		return s, usagef("the cluster in %s has %d nodes: start it without --nodes, and let nodes go with `ostro cluster drain` and `remove`", dir, len(old.Nodes))
	}
	s.Etcd = fmt.Sprintf("etcd://127.0.0.1:%d", s.Port+etcdOffset)
	for _, n := range old.Nodes {
		s.Nodes = append(s.Nodes, s.node(dir, n.Number))
	}
	for len(s.Nodes) < nodes {
		s.Nodes = append(s.Nodes, s.node(dir, s.next()))
	}
	return s, nil
}

const secretName = "secret"

// secretFile makes what the nodes share, once.
func (d *devCluster) secretFile() (string, error) {
	name := filepath.Join(d.dir, secretName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return name, nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, rand.Text())
	return name, err
}
