package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

var testSecret = []byte("only tests know this")

// cluster is a primary and its backups, as far as replication goes: real backups, real calls
// over loopback, and a fabric. The ledger and the members are the test's.
type cluster struct {
	t       testing.TB
	bytes   int
	copies  int
	members *members
	book    *book
	caller  *caller
	device  func(name string) (fabric.Device, error)

	mu    sync.Mutex
	nodes map[view.NodeID]*node
}

// node is a backup that is up, or was.
type node struct {
	member Member
	dir    string
	up     bool
	device fabric.Device
	backup *Backup
	server *peer.Server
	listen net.Listener
	addr   string

	process *fabrictest.Process // or it runs in one of its own
}

func testLogger(t testing.TB) *slog.Logger {
	level := slog.LevelError
	if testing.Verbose() {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("test", t.Name())
}

// newCluster starts backups n1 to nN on an in-process fabric.
func newCluster(t testing.TB, backups, copies, segmentBytes int) *cluster {
	t.Helper()
	network, err := inproc.New(nic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = network.Close() })
	return newClusterOn(t, func(name string) (fabric.Device, error) { return network.Device(name) }, backups, copies, segmentBytes)
}

func newClusterOn(t testing.TB, device func(string) (fabric.Device, error), backups, copies, segmentBytes int) *cluster {
	t.Helper()
	c := &cluster{
		t: t, bytes: segmentBytes, copies: copies, members: newMembers(), book: newBook(copies),
		nodes: map[view.NodeID]*node{}, device: device,
	}
	pool, err := peer.NewPool(peer.PoolOptions{Node: "primary", Secret: testSecret, Address: c.address})
	if err != nil {
		t.Fatal(err)
	}
	c.caller = &caller{Pool: pool, silent: map[view.NodeID]bool{}, tardy: map[view.NodeID]bool{}}
	t.Cleanup(func() { _ = pool.Close() })
	for i := range backups {
		c.add(view.NodeID(fmt.Sprintf("n%d", i+1)))
	}
	return c
}

func (c *cluster) address(id view.NodeID) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[id]; n != nil {
		return n.addr, nil
	}
	return "", errors.New("no such node")
}

// add starts a new backup and gives it a lease.
func (c *cluster) add(id view.NodeID) {
	c.t.Helper()
	n := &node{member: Member{ID: id}, dir: filepath.Join(c.t.TempDir(), string(id))}
	c.mu.Lock()
	c.nodes[id] = n
	c.mu.Unlock()
	c.start(id)
	c.t.Cleanup(func() { c.kill(id) })
}

// start starts a backup on what its directory has, and gives it a lease.
func (c *cluster) start(id view.NodeID) {
	c.t.Helper()
	n := c.nodes[id]
	var err error
	if n.device, err = c.device(string(id)); err != nil {
		c.t.Fatal(err)
	}
	if n.backup, err = OpenBackup(BackupOptions{
		Dir: n.dir, Device: n.device, Node: id, SegmentBytes: uint32(c.bytes),
		FlushRate: 1 << 40, ScrubRate: -1, Log: testLogger(c.t).With("backup", id),
	}); err != nil {
		c.t.Fatal(err)
	}
	if n.server, err = peer.NewServer(peer.ServerOptions{Node: id, Secret: testSecret}); err != nil {
		c.t.Fatal(err)
	}
	n.backup.Handle(n.server)
	if n.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		c.t.Fatal(err)
	}
	go serve(n.listen, n.server)
	c.mu.Lock()
	n.addr, n.up = n.listen.Addr().String(), true
	c.mu.Unlock()
	c.members.join(n.member)
}

func serve(l net.Listener, s *peer.Server) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, whole, err := peer.Peek(conn, 5*time.Second)
			if err != nil {
				_ = conn.Close()
				return
			}
			s.ServeConn(whole)
		}()
	}
}

// kill ends a backup as the death of its process does. Its lease stays, for now.
func (c *cluster) kill(id view.NodeID) {
	n := c.nodes[id]
	c.mu.Lock()
	up := n.up
	n.up = false
	c.mu.Unlock()
	if !up {
		return
	}
	if err := n.device.Close(); err != nil && !errors.Is(err, fabric.ErrNICLost) {
		c.t.Error(err)
	}
	_ = n.listen.Close()
	_ = n.server.Close()
	_ = n.backup.Close()
}

// caller lets backups be silent, as a stopped process is: calls to them end with
// their time.
type caller struct {
	*peer.Pool

	mu     sync.Mutex
	silent map[view.NodeID]bool
	tardy  map[view.NodeID]bool
	before func(to view.NodeID, method string) error
	seen   func(to view.NodeID, method string)
}

func (c *caller) Call(ctx context.Context, to view.NodeID, method string, head any, bulk []byte, answer any) ([]byte, error) {
	c.mu.Lock()
	silent, tardy, before, seen := c.silent[to], c.tardy[to], c.before, c.seen
	c.mu.Unlock()
	if seen != nil {
		seen(to, method)
	}
	if tardy && method == MethodOpen {
		go func() { _, _ = c.Pool.Call(context.WithoutCancel(ctx), to, method, head, bulk, nil) }()
		silent = true
	}
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if before != nil {
		if err := before(to, method); err != nil {
			return nil, err
		}
	}
	return c.Pool.Call(ctx, to, method, head, bulk, answer)
}

// hush makes calls to a node hang, or ends that.
func (c *caller) hush(node view.NodeID, silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent[node] = silent
}

// late lets a node open replicas without answering, or ends that.
func (c *caller) late(node view.NodeID, tardy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tardy[node] = tardy
}

// intercept has f look at calls before they are made.
func (c *caller) intercept(f func(to view.NodeID, method string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = f
}

// observe has f see all calls, those to silent nodes as well.
func (c *caller) observe(f func(to view.NodeID, method string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = f
}

// options are those of a primary in this cluster.
func (c *cluster) options(copies int) PrimaryOptions {
	version, had, backups := c.book.state()
	return PrimaryOptions{
		Self: "primary", Members: c.members.now, Ledger: c.book, Peers: c.caller, Copies: copies,
		Version: version, HadCopies: had, Backups: backups,
		CopyBytesPerSecond: -1, HealthEvery: 50 * time.Millisecond, Log: testLogger(c.t),
	}
}

// primary starts a primary on a log.
func (c *cluster) primary(w *writer, o PrimaryOptions) *Primary {
	c.t.Helper()
	if o.Mode != RPC && o.Device == nil {
		d, err := c.device("primary")
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = d.Close() })
		o.Device = d
	}
	p := NewPrimary(o)
	c.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			c.t.Log(err)
		}
	})
	w.begin(p)
	return p
}
