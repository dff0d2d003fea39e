package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/server"
)

// etcd is that of all tests, each with a cluster of its own in it.
var etcd = sync.OnceValue(func() *meta.Embedded {
	var err error
	if etcdDir, err = os.MkdirTemp("", "ostro-server-etcd-"); err != nil {
		panic(err)
	}
	e, err := meta.StartEmbedded(context.Background(), meta.EmbeddedConfig{Dir: etcdDir, Log: quiet})
	if err != nil {
		panic(err)
	}
	return e
})

// etcdDir is where it has its data, once it has begun.
var etcdDir string

// worlds counts them.
var worlds atomic.Int64

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// patient is how long a test waits for what must come, on a machine that may be very slow.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	t.Cleanup(cancel)
	return ctx
}

// world is a cluster of nodes in this process.
type world struct {
	t     *testing.T
	url   string
	meta  *meta.Store
	cache *meta.Cache
	dir   string
	nodes map[string]*server.Node
	ports map[string][2]*port.Reservation
	log   *slog.Logger
	first int // how many nodes share the keys at first
	lease time.Duration

	replicas            int // 0: as many as usual
	replication, fabric string
	ownership           string            // how ownership is checked, if not as usual
	halt                map[string]string // step at which migrations to a node halt
	halts               string            // directory that tells nodes where to halt, if there is one
	password            string
	proxy               bool
	memory              server.Size // of each node; 0: enough for all
	databases           int         // that nodes are told to have; 0: as many as usual
	wide                int         // bytes that values have more
	blob                string      // URL of the shared tier, if there is one
	disk                server.Size // of each node, once the shared tier holds it; 0: enough for all
}

// newWorld is a cluster beside others: most of what tests of clusters do is wait, for the ends of leases above all.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldAt(t, etcd().URL())
}

// newWorldAt is one whose metadata is at this etcd.
func newWorldAt(t *testing.T, url string) *world {
	t.Helper()
	name := strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())
	w := &world{t: t, dir: t.TempDir(), nodes: map[string]*server.Node{}, ports: map[string][2]*port.Reservation{}, log: quiet, lease: testLease}
	if testing.Verbose() {
		w.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	w.url = fmt.Sprint(url, "/", name[max(0, len(name)-50):], "-", worlds.Add(1)) // Not the same one again with -count.
	c, err := meta.ParseURL(w.url)
	w.must(err)
	c.Log, c.DialTimeout = quiet, testPatience
	w.meta, err = meta.Open(patient(t), c)
	w.must(err)
	t.Cleanup(func() { _ = w.meta.Close() })
	w.must(w.meta.SetBalancer(patient(t), meta.Balancer{Mode: meta.BalancerOff})) // What a test does not move stays where it is.
	w.cache, err = w.meta.Follow(patient(t))
	w.must(err)
	t.Cleanup(w.cache.Close)
	t.Cleanup(w.stopAll)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) config(name string) server.Config {
	if _, ok := w.ports[name]; !ok {
		w.ports[name] = [2]*port.Reservation{port.For(w.t), port.For(w.t)}
	}
	c := server.Default()
	c.Bind = []string{"127.0.0.1"}
	c.Port, c.ClusterPort = w.ports[name][0].Number, w.ports[name][1].Number
	c.AdminAddr = "127.0.0.1:0"
	c.Dir = filepath.Join(w.dir, name)
	c.SegmentSize = 64 << 10
	c.MemoryLimit = server.Budget{Bytes: 32 << 20}
	if w.memory != 0 {
		c.MemoryLimit.Bytes = w.memory
	}
	c.BlobURL, c.DiskLimit = w.blob, w.disk
	c.Cluster, c.NodeID, c.ClusterLease = w.url, name, w.lease
	c.ClusterMinNodes = w.first
	c.Fabric, c.RequirePass, c.Proxy = w.fabric, w.password, w.proxy
	c.MigrateHaltAt, c.MigrateHaltDir = w.halt[name], w.halts
	if w.databases != 0 {
		c.Databases = w.databases
	}
	if w.replicas != 0 {
		c.ClusterReplicas = w.replicas
	}
	if w.ownership != "" {
		c.OwnershipCheck = w.ownership
	}
	if w.replication != "" {
		c.Replication = w.replication
	}
	c.Loops = 1
	return c
}

// start starts nodes all at once, as they wait for each other.
func (w *world) start(names ...string) {
	w.t.Helper()
	if w.first == 0 {
		w.first = len(names)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	soon, errs := patient(w.t), map[string]error{}
	for _, name := range names {
		c := w.config(name)
		all.Go(func() {
			n, err := server.Start(c, server.WithLogger(w.log.With("node", name)))
			for errors.Is(err, context.DeadlineExceeded) && soon.Err() == nil { // etcd had no core for seconds, or no disk: who supervises nodes starts them again, too.
				n, err = server.Start(c, server.WithLogger(w.log.With("node", name)))
			}
			mu.Lock()
			defer mu.Unlock()
			errs[name], w.nodes[name] = err, n
		})
	}
	started := make(chan struct{})
	go func() { all.Wait(); close(started) }()
	select {
	case <-started:
	case <-soon.Done(): // A node waits to join for as long as it takes.
		w.t.Fatalf("%v did not all start:\n%+v", names, w.cache.Snapshot())
	}
	for name, err := range errs {
		if err != nil {
			w.t.Fatalf("%s did not start: %v", name, err)
		}
	}
}

func (w *world) stopAll() {
	var all sync.WaitGroup
	for _, n := range w.nodes {
		if n != nil {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				_ = n.Stop(ctx)
			})
		}
	}
	all.Wait()
}

func (w *world) await(what string, enough func(*meta.Snapshot) bool) *meta.Snapshot {
	w.t.Helper()
	s, err := w.cache.Wait(patient(w.t), enough)
	if err != nil {
		w.t.Fatalf("waited in vain for %s: %v\n%+v", what, err, w.cache.Snapshot())
	}
	return s
}

func TestNodesFormAClusterAndSendClientsToEachOther(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	s := w.await("owners", func(s *meta.Snapshot) bool { return len(s.Map.Owners()) == 3 })
	moved, served := 0, 0
	for i := range 30 {
		reply := say(t, w.nodes["n1"].Addr(), fmt.Sprint("SET key", i, " 1"))
		switch {
		case reply == "+OK":
			served++
		case strings.HasPrefix(reply, "-MOVED "):
			moved++
			to := strings.Fields(reply)[2]
			if got := say(t, to, fmt.Sprint("SET key", i, " 1")); got != "+OK" {
				t.Fatalf("%s sent us to %s, which answered %s", reply, to, got)
			}
		default:
			t.Fatalf("SET answered %q", reply)
		}
	}
	if served == 0 || moved == 0 {
		t.Fatalf("n1 served %d and moved %d of 30", served, moved)
	}
	w.until("all nodes say how they are", func() bool { // A status does not wait for long for one that is slow.
		status, err := server.ReadClusterStatus(patient(t), w.meta, nil)
		w.must(err)
		if len(status.Nodes) != 3 || status.Coordinator == "" {
			t.Fatalf("the status is %+v", status)
		}
		return !slices.ContainsFunc(status.Nodes, func(n server.NodeStatus) bool { return n.Facts == nil })
	})
	if view := s.Map.ViewID(view.NodeID("n1")); view != 1 {
		t.Fatalf("n1 is in view %d", view)
	}
	metrics := w.scrape("n1")
	for _, line := range []string{"ostro_ready 1", "ostro_cluster_leased 1", "ostro_cluster_nodes_living 3", "ostro_copies_wanted 2", "ostro_cluster_view 1"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("the metrics lack %q", line)
		}
	}
}

// What one node has of a database must have room at all others.
func TestANodeHasAsManyDatabasesAsItsCluster(t *testing.T) {
	w := newWorld(t)
	w.databases, w.replicas = 32, 1
	w.start("n1")
	w.databases = 8
	w.start("n2")
	for _, name := range []string{"n1", "n2"} {
		if got := w.nodes[name].Engine().Options().Databases; got != 32 {
			t.Errorf("%s has %d databases, and n1 was told to have 32", name, got)
		}
	}
}

// One that had more was started since: of the others only those that were started again could take what it has.
func TestNothingMovesToANodeThatHasFewerDatabasesUntilItIsStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	w.databases = 32
	w.drop("n1")
	w.start("n1")
	w.await("copies", copied)
	m := w.migrate("n3", "n2", half(w.cache.Snapshot(), "n3"), meta.MigrationOptions{})
	w.await("why it does not begin", func(s *meta.Snapshot) bool {
		return strings.Contains(s.Moves[m.ID].Waiting, "databases 0 to 31, and the process of n2 has 0 to 15: start it again")
	})
	w.drop("n2")
	w.start("n2")
	if m = w.ended(m.ID); m.Stage != meta.Done {
		m = w.migrate("n3", "n2", half(w.cache.Snapshot(), "n3"), meta.MigrationOptions{}) // It ends with the process of its target.
		w.done(m.ID)
	}
}

// scrape reads a node's metrics.
func (w *world) scrape(name string) string {
	w.t.Helper()
	r, err := http.Get("http://" + w.nodes[name].AdminAddr() + "/metrics")
	w.must(err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	w.must(err)
	return string(text)
}

func TestNativeClientsGoOnWhenANodeDies(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.dial("n1", "n3")
	const counters, rounds = 50, 20
	for round := range rounds {
		if round == rounds/2 {
			w.drop("n2")
		}
		var all []*client.Future
		for i := range counters {
			all = append(all, c.Add(patient(t), 0, []byte(key(i)), 1))
		}
		for _, f := range all {
			if _, err := f.Wait(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	for i := range counters {
		got, err := c.Get(patient(t), 0, []byte(key(i))).Wait()
		if err != nil || got.Int() != rounds {
			t.Fatalf("%s was counted to %d (%v) in %d rounds", key(i), got.Int(), err, rounds)
		}
	}
}

// client is an ordinary client of Redis Cluster.
func (w *world) client(names ...string) *redis.ClusterClient {
	var addrs []string
	for _, n := range names {
		addrs = append(addrs, w.nodes[n].Addr())
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, MaxRedirects: 30, MaxRetries: 30, ReadTimeout: 20 * time.Second})
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

func key(i int) string { return fmt.Sprint("key:", i) }

// value is what a key is set to.
func (w *world) value(i int) string { return fmt.Sprint("value ", i, strings.Repeat(".", w.wide)) }

// write sets keys from a number to another.
func (w *world) write(c *redis.ClusterClient, from, to int) {
	w.t.Helper()
	ctx := patient(w.t)
	for i := from; i < to; i += 100 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for j := i; j < min(i+100, to); j++ {
				p.Set(ctx, key(j), w.value(j), 0)
			}
			return nil
		})
		w.must(err)
	}
}

// check finds all keys from a number to another.
func (w *world) check(c *redis.ClusterClient, from, to int) {
	w.t.Helper()
	ctx := patient(w.t)
	for i := from; i < to; i += 100 {
		var got []*redis.StringCmd
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for j := i; j < min(i+100, to); j++ {
				got = append(got, p.Get(ctx, key(j)))
			}
			return nil
		})
		for n, g := range got {
			if g.Val() != w.value(i+n) {
				w.t.Fatalf("%s is %.40q, %v (%v)", key(i+n), g.Val(), g.Err(), err)
			}
		}
	}
}

// copied tells whether all logs have all their copies.
func copied(s *meta.Snapshot) bool {
	for _, n := range s.Living() {
		if l := s.Logs[s.Nodes[n].Log]; l.Copies < min(s.Settings.Replicas-1, len(s.Alive)-1) {
			return false
		}
	}
	return !s.Map.IsZero()
}

func settled(s *meta.Snapshot) bool {
	return !s.Map.IsZero() && len(s.Dead()) == 0 && len(s.Recoveries) == 0
}

func TestHeirsHaveEverythingThatADeadNodeAcknowledged(t *testing.T) {
	long(t)
	w := newWorld(t)
	w.start("n1", "n2", "n3", "n4")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3", "n4")
	w.write(c, 0, 2000)
	w.drop("n2")
	w.await("heirs", func(s *meta.Snapshot) bool { return settled(s) && len(s.Map.Ranges("n2")) == 0 })
	c = w.client("n1", "n3", "n4")
	w.check(c, 0, 2000)
	w.write(c, 2000, 3000)
	// It comes back with nothing, and is a backup and heir like any other.
	w.start("n2")
	w.check(c, 0, 3000)
}

func TestHeirsServeWhatTheyHaveWhileTheyReplay(t *testing.T) {
	long(t)
	w := newWorld(t)
	w.start("n1", "n2", "n3", "n4")
	w.await("copies", copied)
	c := w.client("n1", "n3", "n4")
	w.write(c, 0, 1000)
	before := w.cache.Snapshot().Map
	letGo := sync.OnceFunc(func() {})
	for _, n := range []string{"n1", "n3", "n4"} {
		let, others := w.nodes[n].HoldReplays(), letGo
		letGo = sync.OnceFunc(func() { let(); others() })
	}
	defer func() { letGo() }()
	w.drop("n2")
	w.await("a plan for the heirs", func(s *meta.Snapshot) bool {
		for _, r := range s.Recoveries {
			return r.Plan != nil
		}
		return false
	})
	c = w.client("n1", "n3", "n4") // It knows nothing of the dead one.
	var dead []int
	for i := range 1000 {
		if owner, _ := before.Owner(record.PlaceOf(0, []byte(key(i)))); owner == "n2" {
			dead = append(dead, i)
		} else {
			w.check(c, i, i+1)
		}
	}
	waiting := make(chan error)
	for _, i := range dead[:5] {
		go func() {
			got, err := c.Get(patient(t), key(i)).Result()
			if err == nil && got != w.value(i) {
				err = fmt.Errorf("%s is %q", key(i), got)
			}
			waiting <- err
		}()
	}
	letGo()
	for range 5 {
		w.must(<-waiting)
	}
}
