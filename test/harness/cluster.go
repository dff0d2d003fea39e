package harness

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/port"
)

// Cluster is nodes, an etcd, and a NIC if they use one, each a process of its own.
type Cluster struct {
	Nodes []*Node
	Etcd  *Process
	NIC   *Process // nil without one
	Net   *Network // nil if all are on one machine

	t       testing.TB
	o       ClusterOptions
	dir     string
	url     string // of etcd, as nodes are told
	etcd    string // its address
	secured *secured
	secret  string
	metaMu  sync.Mutex
	metaNow *meta.Store
}

// ClusterOptions say what a cluster is made of.
type ClusterOptions struct {
	Binary      string
	Nodes       int
	Fabric      string // shm, or tcp if empty
	Replication string // one-sided if empty
	Machines    bool   // each on a machine of its own, within an Isolated test
	DiskBytes   int64  // each node has a disk of this size, within an Isolated test
	Secure      bool   // etcd wants TLS, certificates and a password
	// Balancer is how the cluster is kept even. The zero value is off: what a test does not move stays where it is.
	Balancer meta.Balancer
	Args     []string
}

// Node is one node of a cluster.
type Node struct {
	*Process
	ID   string
	Addr string // for Redis clients
	// Admin is where it tells its numbers.
	Admin string
	Dir   string
	args  []string
}

// TheEtcd is the name of etcd's machine.
const TheEtcd = "etcd"

// StartCluster starts a cluster and returns when it serves. It ends with the test, whose
// failure shows the logs; then its directory stays.
func StartCluster(t testing.TB, o ClusterOptions) *Cluster {
	t.Helper()
	dir, err := ScratchDir("ostro-cluster-")
	must(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	c := &Cluster{t: t, o: o, dir: dir, secret: filepath.Join(dir, "secret")}
	must(t, os.WriteFile(c.secret, []byte("what the nodes of this test share\n"), 0o600))
	if o.Machines {
		names := []string{TheEtcd}
		for n := range o.Nodes {
			names = append(names, nodeName(n))
		}
		c.Net = NewNetwork(t, names...)
	}
	c.prepareEtcd()
	must(t, c.StartEtcd())
	must(t, c.secure())
	must(t, c.setBalancer())
	must(t, c.startNIC())
	for n := range o.Nodes {
		c.prepare(n)
	}
	for _, n := range c.Nodes {
		must(t, n.Start())
	}
	must(t, c.WaitHealthy())
	return c
}

func (c *Cluster) setBalancer() error {
	b := c.o.Balancer
	if b.Mode == "" {
		b.Mode = meta.BalancerOff
	}
	return Eventually("etcd takes wishes", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		m, err := c.Meta(ctx)
		if err != nil {
			return err
		}
		return m.SetBalancer(ctx, b)
	})
}

func nodeName(n int) string { return fmt.Sprintf("node%d", n+1) }

// process prepares one that ends with the test.
func (c *Cluster) process(name string, lines int) *Process {
	p := &Process{Name: name, binary: c.o.Binary, log: filepath.Join(c.dir, name+".log")}
	if c.Net != nil {
		if m := c.Net.machines[name]; m != nil {
			p.space = m.space
		}
	}
	c.t.Cleanup(p.Kill)
	p.tellOnFailure(c.t, lines)
	return p
}

// host is the address of a machine.
func (c *Cluster) host(name string) string {
	if c.Net != nil {
		return c.Net.IP(name)
	}
	return "127.0.0.1"
}

// port is one that is free where the nodes are.
func (c *Cluster) port(otherwise int) string {
	if c.Net != nil {
		return strconv.Itoa(otherwise) // Each has a machine to itself.
	}
	return strconv.Itoa(port.For(c.t).Number)
}

func (c *Cluster) prepareEtcd() {
	c.Etcd = c.process(TheEtcd, 20)
	c.etcd = c.host(TheEtcd) + ":" + c.port(2379)
	c.url = "etcd://" + c.etcd
	if c.o.Secure {
		c.prepareSecured(c.etcd)
	}
	c.t.Cleanup(c.hangUp)
}

// StartEtcd starts etcd; it may have run before.
func (c *Cluster) StartEtcd() error {
	args := []string{"cluster", "etcd", "--addr", c.etcd, "--dir", filepath.Join(c.dir, "etcd"), "--log-level", "warn"}
	if c.secured != nil {
		args = append(args, c.secured.args()...)
	}
	return c.Etcd.start(args...)
}

func (c *Cluster) startNIC() error {
	if c.o.Fabric != "shm" {
		return nil
	}
	c.NIC = c.process("nic", 20)
	if err := c.NIC.start("nic", "--socket", c.nicSocket(), "--realtime", "0"); err != nil {
		return err
	}
	return Eventually("the NIC listens", func() error {
		_, err := os.Stat(c.nicSocket())
		return err
	})
}

func (c *Cluster) nicSocket() string { return filepath.Join(c.dir, "nic.sock") }

// prepare makes a node that can be started.
func (c *Cluster) prepare(number int) {
	name := nodeName(number)
	n := &Node{Process: c.process(name, 60), ID: name, Dir: filepath.Join(c.dir, name)}
	must(c.t, os.MkdirAll(n.Dir, 0o700))
	if c.o.DiskBytes > 0 {
		SmallDisk(c.t, n.Dir, c.o.DiskBytes)
	}
	host, redis := c.host(name), c.port(7000)
	n.Addr, n.Admin = host+":"+redis, host+":"+c.port(7100)
	n.args = append([]string{
		"server", "--bind", host, "--port", redis, "--protected-mode", "no", "--dir", filepath.Join(n.Dir, "data"), "--admin-addr", n.Admin,
		"--cluster", c.url, "--node-id", name, "--cluster-port", c.port(17000), "--cluster-secret-file", c.secret,
		"--cluster-min-nodes", strconv.Itoa(c.o.Nodes), "--cluster-replicas", strconv.Itoa(min(3, c.o.Nodes)),
		"--memory-limit", "512MiB",
	}, c.o.Args...)
	if c.o.Replication != "" {
		n.args = append(n.args, "--replication", c.o.Replication)
	}
	if c.NIC != nil {
		n.args = append(n.args, "--fabric", "shm://"+c.nicSocket())
	}
	c.Nodes = append(c.Nodes, n)
}

// Start starts the node's process; it may have run before.
func (n *Node) Start() error { return n.start(n.args...) }

// With has the node's next start take settings over those that it has.
func (n *Node) With(args ...string) { n.args = append(n.args, args...) }

// Addrs is where clients can ask.
func (c *Cluster) Addrs() (all []string) {
	for _, n := range c.Nodes {
		all = append(all, n.Addr)
	}
	return all
}

// Node returns the one of that name.
func (c *Cluster) Node(id view.NodeID) *Node {
	for _, n := range c.Nodes {
		if n.ID == string(id) {
			return n
		}
	}
	return nil
}

// Metadata is what etcd has now.
func (c *Cluster) Metadata() (*meta.Snapshot, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m, err := c.Meta(ctx)
	if err != nil {
		return nil, err
	}
	return m.Read(ctx)
}

// Meta is what operators write their wishes to.
func (c *Cluster) Meta(ctx context.Context) (*meta.Store, error) {
	c.metaMu.Lock()
	defer c.metaMu.Unlock()
	if c.metaNow == nil {
		var err error
		if c.metaNow, err = c.openMeta(ctx); err != nil {
			return nil, err
		}
	}
	return c.metaNow, nil
}

func (c *Cluster) openMeta(ctx context.Context) (*meta.Store, error) {
	config, err := meta.ParseURL(c.url)
	if err != nil {
		return nil, err
	}
	config.Log = slog.New(slog.DiscardHandler)
	return meta.Open(ctx, config)
}

func (c *Cluster) hangUp() {
	c.metaMu.Lock()
	defer c.metaMu.Unlock()
	if c.metaNow != nil {
		_ = c.metaNow.Close()
	}
}

// URL is where its metadata is, as nodes and operators' commands are told.
func (c *Cluster) URL() string { return c.url }

// Command runs a command of an operator on this cluster, and returns what it printed.
func (c *Cluster) Command(args ...string) (string, error) {
	out, err := exec.Command(c.o.Binary, append(args, "--cluster", c.url)...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("ostro %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return text, nil
}

// Owner is who owns a key.
func (c *Cluster) Owner(key string) (*Node, error) {
	s, err := c.Metadata()
	if err != nil {
		return nil, err
	}
	owner, _ := s.Map.Owner(record.PlaceOf(0, []byte(key)))
	return c.Node(owner), nil
}

// WaitHealthy waits until every key is served by a living node, and has all its copies.
func (c *Cluster) WaitHealthy() error { return Eventually("the cluster is healthy", c.Unhealthy) }

// Crashed is Hopeless if a process ended by itself.
func (c *Cluster) Crashed() error {
	for _, p := range c.processes() {
		if err := p.Crashed(); err != nil {
			return GiveUp(err)
		}
	}
	return nil
}

// Kills is how many processes were killed so far.
func (c *Cluster) Kills() (n int) {
	for _, p := range c.processes() {
		n += int(p.kills.Load())
	}
	return n
}

func (c *Cluster) processes() []*Process {
	all := []*Process{c.Etcd}
	if c.NIC != nil {
		all = append(all, c.NIC)
	}
	for _, n := range c.Nodes {
		all = append(all, n.Process)
	}
	return all
}

// Unhealthy says what is not as it should be. Nodes that do not run are no fault, if
// others have taken their places.
func (c *Cluster) Unhealthy() error {
	if err := c.Crashed(); err != nil {
		return err
	}
	s, err := c.Metadata()
	if err != nil {
		return err
	}
	running := 0
	for _, n := range c.Nodes {
		if !n.Running() {
			continue
		}
		running++
		if !s.IsAlive(view.NodeID(n.ID)) {
			return fmt.Errorf("%s has no lease", n.ID)
		}
		if s.Alive[view.NodeID(n.ID)].Started.Before(n.began) {
			return fmt.Errorf("%s has the lease of its former process, which will end", n.ID)
		}
	}
	switch {
	case len(s.Alive) != running:
		return fmt.Errorf("%v are alive, and %d processes run", s.Living(), running)
	case s.Map.IsZero():
		return fmt.Errorf("nobody owns anything")
	case len(s.Dead()) > 0:
		return fmt.Errorf("%v are dead and own something", s.Dead())
	}
	for _, m := range s.Migrations {
		if !m.Stage.Ended() {
			return fmt.Errorf("migration %d from %s to %s is %s: %+v", m.ID, m.Source, m.Target, m.Stage, s.Moves[m.ID])
		}
	}
	for log, r := range s.Recoveries {
		return fmt.Errorf("the recovery of %s, log %016x, goes on: %+v", r.Node, uint64(log), s.Progress[log])
	}
	return c.tooFewCopies(s, running)
}

func (c *Cluster) tooFewCopies(s *meta.Snapshot, running int) error {
	wanted := min(s.Settings.Replicas, running) - 1
	for _, id := range s.Map.Owners() {
		if l := s.Logs[s.Nodes[id].Log]; l.Copies < wanted {
			return fmt.Errorf("the log of %s has %d copies on %v, not %d", id, l.Copies, l.Backups, wanted)
		}
		if absent := s.Absent(s.Logs[s.Nodes[id].Log]); len(absent) > 0 {
			return fmt.Errorf("copies of the log of %s that were at %v are not made anew yet", id, absent)
		}
		if err := c.Node(id).thin(); err != nil {
			return err
		}
		if err := ping(c.Node(id).Addr); err != nil {
			return fmt.Errorf("%s does not serve: %w", id, err)
		}
	}
	return nil
}

// thin says whether segments of a node's log have fewer copies than wanted: those at nodes that were away for
// a moment count again only when the node has made sure of them.
func (n *Node) thin() error {
	thin, err := n.Metric("ostro_copies_thin_segments")
	if err == nil && thin > 0 {
		err = fmt.Errorf("%s has segments with fewer copies than wanted", n.ID)
	}
	return err
}

// Metric is one of the numbers that the node tells.
func (n *Node) Metric(name string) (float64, error) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get("http://" + n.Admin + "/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut("\n"+string(text), "\n"+name+" ")
	if !found {
		return 0, fmt.Errorf("%s does not tell %s", n.ID, name)
	}
	value, _, _ := strings.Cut(after, "\n")
	return strconv.ParseFloat(value, 64)
}

func ping(addr string) error {
	conn, err := Connect(addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	v, err := conn.Do("PING")
	if err == nil && !strings.Contains(Text(v), "PONG") {
		err = fmt.Errorf("PING was answered by %s", Text(v))
	}
	return err
}
