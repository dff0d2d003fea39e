package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/background"
	"github.com/ostrodb/ostro/server"
)

// long leaves tests of what others cover, too, to those who have the time.
func long(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
}

// drop kills nodes, all at once.
func (w *world) drop(names ...string) {
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(w.nodes[name].Drop)
		delete(w.nodes, name)
	}
	all.Wait()
}

// All but one of the nodes that have a segment may go, with all they have.
func TestAClusterKeepsAsManyCopiesAsItIsTold(t *testing.T) {
	long(t)
	for _, replicas := range []int{2, 5} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			w := newWorld(t)
			w.replicas = replicas
			var names []string
			for n := range replicas + 1 {
				names = append(names, fmt.Sprint("n", n))
			}
			w.start(names...)
			w.await("copies", func(s *meta.Snapshot) bool { return copied(s) && s.Settings.Replicas == replicas })
			w.write(w.client(names...), 0, 2000)
			gone := names[:replicas-1]
			w.drop(gone...)
			for _, n := range gone {
				w.must(os.RemoveAll(filepath.Join(w.dir, n)))
			}
			w.await("heirs", func(s *meta.Snapshot) bool { return settled(s) && len(s.Alive) == len(names)-len(gone) })
			w.check(w.client(names[replicas-1:]...), 0, 2000)
		})
	}
}

// revoke ends a node's lease in etcd while the node knows of nothing.
func (w *world) revoke(name string) {
	w.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd().Addr()}})
	w.must(err)
	defer c.Close()
	key := "/ostro/" + w.url[strings.LastIndex(w.url, "/")+1:] + "/alive/" + name
	got, err := c.Get(patient(w.t), key)
	w.must(err)
	if len(got.Kvs) != 1 {
		w.t.Fatalf("%s has no lease", name)
	}
	_, err = c.Revoke(patient(w.t), clientv3.LeaseID(got.Kvs[0].Lease))
	w.must(err)
}

// Its revision rises by what this cluster never hears of, also between a node's joining and its look at the result.
func TestNodesJoinWhileOthersWriteToTheSameEtcd(t *testing.T) {
	w := newWorld(t)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd().Addr()}})
	w.must(err)
	t.Cleanup(func() { _ = c.Close() })
	ctx, stop := context.WithCancel(patient(t))
	var others sync.WaitGroup
	for i := range 8 {
		others.Go(func() {
			for ctx.Err() == nil {
				_, _ = c.Put(ctx, fmt.Sprint("/elsewhere/", i), "")
				background.Pause(ctx, time.Millisecond) // Other tests have leases there.
			}
		})
	}
	t.Cleanup(others.Wait)
	t.Cleanup(stop)
	w.start("n1", "n2", "n3")
}

// all names the nodes that run.
func (w *world) all() (names []string) {
	for name := range w.nodes {
		names = append(names, name)
	}
	return names
}

func TestAClusterThatWasKilledWholeComesBackWithEverything(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	names := []string{"n1", "n2", "n3", "n4"}
	w.start(names...)
	w.await("copies", copied)
	w.write(w.client(names...), 0, 3000)
	w.drop(names...)
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	w.start(names...)
	w.await("all of them", func(s *meta.Snapshot) bool { return settled(s) && len(s.Alive) == 4 })
	c := w.client(names...)
	w.check(c, 0, 3000)
	w.write(c, 3000, 3500)
	w.check(c, 0, 3500)
}

func TestANodeOfAClusterWithoutCopiesStartsAgain(t *testing.T) {
	long(t)
	w := newWorld(t)
	w.replicas = 1
	w.start("n1", "n2")
	w.await("owners", func(s *meta.Snapshot) bool { return len(s.Map.Owners()) == 2 })
	w.write(w.client("n1", "n2"), 0, 500)
	w.drop("n1")
	w.start("n1")
	w.check(w.client("n1", "n2"), 0, 500)
}

// A process with an empty directory runs before it joins, and others may ask it. What it does not have is no news: those who have it may
// only be slow.
func TestANodeWithAnEmptyDiskDoesNotAnswerForWhatItHad(t *testing.T) {
	long(t)
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	w.write(w.client("n1", "n2", "n3"), 0, 2000)
	w.drop("n1", "n2", "n3")
	w.must(os.RemoveAll(filepath.Join(w.dir, "n2")))
	lost := w.cache.Snapshot().Nodes["n1"].Log
	var all sync.WaitGroup
	started := make([]*server.Node, 2)
	for i, name := range []string{"n2", "n4"} {
		c := w.config(name)
		all.Go(func() {
			var err error
			if started[i], err = server.Start(c, server.WithLogger(w.log.With("node", name))); err != nil {
				t.Error(name, err)
			}
		})
	}
	w.await("the new node would recover the others", func(s *meta.Snapshot) bool { return len(s.Progress[lost]) > 0 || s.Logs[lost].Retired })
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // It asks again and again.
		if s := w.cache.Snapshot(); s.Logs[lost].Retired {
			t.Fatalf("what n1 had is recovered from nothing: %+v", s.Recoveries[lost])
		}
	}
	w.start("n1", "n3")
	all.Wait()
	w.nodes["n2"], w.nodes["n4"] = started[0], started[1]
	w.await("all is served", func(s *meta.Snapshot) bool { return settled(s) && len(s.Alive) == 4 })
	w.check(w.client("n1", "n3"), 0, 2000)
}

func TestWhatNobodyCanHaveIsNotWaitedFor(t *testing.T) {
	const log = 7
	ghost := view.NodeID("b~1")
	for _, c := range []struct {
		what            string
		backups, silent []view.NodeID
		lost            bool // an operator gave c up
		damaged         bool // a copy cannot be read
		want            bool
	}{
		{"all have answered", []view.NodeID{"b", "c"}, nil, false, false, true},
		{"one has lost its disk, and all have answered", []view.NodeID{"b", "c", ghost}, nil, false, false, true},
		{"one has lost its disk, and a copy of another is damaged", []view.NodeID{"b", "c", ghost}, nil, false, true, false},
		{"one is only down", []view.NodeID{"b", "c"}, []view.NodeID{"c"}, false, false, false},
		{"one has lost its disk, and one is only down", []view.NodeID{"b", "c", ghost}, []view.NodeID{"c"}, false, false, false},
		{"one was given up", []view.NodeID{"b", "c"}, []view.NodeID{"c"}, true, false, true},
		{"one was given up, and a copy of the other is damaged", []view.NodeID{"b", "c"}, []view.NodeID{"c"}, true, true, true},
		{"two have lost their disks", []view.NodeID{"b", "c", ghost, "c~1"}, nil, false, false, false},
	} {
		s := &meta.Snapshot{
			Nodes: map[view.NodeID]meta.Node{"a": {ID: "a", Log: log}, "b": {ID: "b"}, "c": {ID: "c"}},
			Logs:  map[record.LogID]meta.Log{log: {ID: log, Node: "a", Copies: 2, Backups: c.backups}},
		}
		if c.lost {
			s.Marks = map[view.NodeID]meta.Marks{"c": {Lost: true}}
		}
		answered := func(n view.NodeID) bool { return !meta.IsGhost(n) && !slices.Contains(c.silent, n) }
		if got := server.NobodyElse(s, s.Logs[log], answered, c.damaged); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

func TestANodeWhoseLeaseWasDroppedServesAgainOrBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3", "n4")
	w.await("copies", copied)
	w.write(w.client("n1"), 0, 1000)
	was := w.cache.Snapshot().Alive["n3"].Started
	w.revoke("n3")
	w.await("its end", func(s *meta.Snapshot) bool { return !s.IsAlive("n3") || !s.Alive["n3"].Started.Equal(was) })
	// Whoever is faster, the node or the coordinator: both ends are good.
	w.await("its return", func(s *meta.Snapshot) bool { return settled(s) && len(s.Alive) == 4 })
	c := w.client("n1", "n2", "n4")
	w.check(c, 0, 1000)
	w.write(c, 1000, 1500)
	w.check(c, 0, 1500)
}

// What a client has not read when the log of its node is over would keep the node from another one for as long.
func TestANodeBeginsAnewThoughAClientDoesNotRead(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3", "n4")
	w.await("copies", copied)
	n := w.nodes["n3"]
	c, err := net.Dial("tcp", n.Addr())
	w.must(err)
	defer c.Close()
	const long, many = 1 << 20, 64
	echo := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", long, strings.Repeat("x", long))
	for range many {
		_, err := c.Write([]byte(echo))
		w.must(err)
	}
	before := n.Engine()
	n.Depose()
	await.True(t, "the node has another store", func() bool { now := n.Engine(); return now != nil && now != before })
}

// TestANodeStopsWhileItBeginsAnew stops nodes that have a store again and open their doors.
func TestANodeStopsWhileItBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.start("n1")
	for range 3 {
		n := w.nodes["n1"]
		addr, before := n.Addr(), n.Engine()
		n.Depose()
		await.True(t, "the node has another store", func() bool { now := n.Engine(); return now != nil && now != before })
		w.must(n.Stop(patient(t)))
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			t.Fatal("a stopped node lets clients in")
		}
		w.start("n1")
	}
}

// grant asks for something to be done with a node, and waits until it is.
func (w *world) grant(n view.NodeID, what meta.Wish) {
	w.t.Helper()
	asked, err := w.meta.Wish(patient(w.t), n, what)
	w.must(err)
	w.must(w.meta.Fulfil(patient(w.t), n, asked, func(why string) { w.t.Log(why) }))
}

func TestADrainedNodeGivesAllToOthersAndStays(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3", "n4")
	w.await("copies", copied)
	w.write(w.client("n1"), 0, 1000)
	w.grant("n2", meta.Wish{Act: meta.Drain})
	s := w.await("its return", func(s *meta.Snapshot) bool { return settled(s) && s.IsAlive("n2") })
	if len(s.Map.Ranges("n2")) != 0 {
		t.Fatalf("n2 has %v", s.Map.Ranges("n2"))
	}
	for id, l := range s.Logs {
		for _, b := range l.Backups {
			if b == "n2" && !l.Retired {
				t.Fatalf("the log %x of %s counts on n2", id, l.Node)
			}
		}
	}
	w.check(w.client("n1", "n3"), 0, 1000)
	w.must(w.nodes["n2"].Stop(patient(t)))
	delete(w.nodes, "n2")
	w.grant("n2", meta.Wish{Act: meta.Remove})
	w.check(w.client("n1", "n3"), 0, 1000)
}

func TestANodeAloneKeepsItsKeys(t *testing.T) {
	long(t)
	w := newWorld(t)
	w.start("n1")
	w.write(w.client("n1"), 0, 500)
	w.must(w.nodes["n1"].Stop(patient(t)))
	w.start("n1")
	w.check(w.client("n1"), 0, 500)
	w.drop("n1")
	w.start("n1")
	w.check(w.client("n1"), 0, 500)
	// Others make it a cluster whose keys have copies.
	w.start("n2", "n3")
	w.await("copies", copied)
	w.drop("n1")
	w.await("heirs", func(s *meta.Snapshot) bool { return settled(s) && len(s.Map.Ranges("n1")) == 0 })
	w.check(w.client("n2", "n3"), 0, 500)
}

func TestCallsReplicateAsOneSidedWritesDo(t *testing.T) {
	long(t)
	w := newWorld(t)
	w.replication = "rpc"
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	w.write(w.client("n1"), 0, 1000)
	w.drop("n2")
	w.await("heirs", func(s *meta.Snapshot) bool { return settled(s) && len(s.Map.Ranges("n2")) == 0 })
	w.check(w.client("n1", "n3"), 0, 1000)
}

// After a loss of power a disk lacks what was not synced.
func TestANodeBringsBackWhatItsMachineHasLost(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	w.write(w.client("n1"), 0, 2000)
	// All at once, so that nobody takes over.
	w.drop("n1", "n2", "n3")
	for _, name := range []string{"n1", "n2", "n3"} {
		w.loseTail(name)
	}
	w.start("n1", "n2", "n3")
	w.check(w.client("n1", "n2", "n3"), 0, 2000)
}

// loseTail makes a node's disk and identity as they are after a loss of power: the newest segment
// is empty, others lack their ends.
func (w *world) loseTail(name string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name, "node.json")
	text, err := os.ReadFile(path)
	w.must(err)
	var id map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	w.must(d.Decode(&id))
	id["boot"] = "another"
	text, err = json.Marshal(id)
	w.must(err)
	w.must(os.WriteFile(path, text, 0o600))
	files, err := filepath.Glob(filepath.Join(w.dir, name, "log", "segments", "*"))
	w.must(err)
	if len(files) == 0 {
		w.t.Fatalf("%s has no segments", name)
	}
	for i, file := range files {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		w.must(err)
		info, err := f.Stat()
		w.must(err)
		from := info.Size() / 4
		if i == len(files)-1 {
			from = 0
		}
		_, err = f.WriteAt(make([]byte, info.Size()-from), from)
		w.must(err)
		w.must(f.Close())
	}
}

func TestAnHeirThatDiesToo(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3", "n4", "n5")
	w.await("copies", copied)
	w.write(w.client("n1"), 0, 2000)
	log := w.cache.Snapshot().Nodes["n2"].Log
	w.drop("n2")
	s := w.await("the beginning of its recovery", func(s *meta.Snapshot) bool { return s.Logs[log].Retired })
	heir := view.NodeID("n3")
	if s.Coordinator == heir {
		heir = "n4"
	}
	w.drop(string(heir))
	w.await("heirs of both", func(s *meta.Snapshot) bool {
		return settled(s) && len(s.Map.Ranges("n2"))+len(s.Map.Ranges(heir)) == 0
	})
	w.check(w.client(w.all()...), 0, 2000)
}

func TestTheCoordinatorDiesWithAnother(t *testing.T) {
	long(t)
	w := newWorld(t)
	w.start("n1", "n2", "n3", "n4")
	w.await("copies", copied)
	w.write(w.client("n1"), 0, 1000)
	began := time.Now()
	first := string(w.cache.Snapshot().Coordinator)
	w.drop(first)
	s := w.await("heirs", func(s *meta.Snapshot) bool {
		return settled(s) && len(s.Map.Ranges(view.NodeID(first))) == 0 && s.Coordinator != ""
	})
	t.Logf("after %v", time.Since(began))
	if string(s.Coordinator) == first {
		t.Fatalf("the coordinator is still %s", first)
	}
	w.check(w.client(w.all()...), 0, 1000)
}

// A node that comes back at once finds the lease of its former self. When that ends, the
// coordinator may be faster than the node.
func TestANodeThatComesBackAtOnceServesAgain(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	w.write(w.client("n1"), 0, 500)
	w.nodes["n2"].Forsake()
	delete(w.nodes, "n2")
	w.start("n2")
	w.await("all of them", func(s *meta.Snapshot) bool { return settled(s) && len(s.Alive) == 3 })
	w.check(w.client("n1", "n2", "n3"), 0, 500)
}

func TestANodeWhoseFabricIsGoneAsksToBeStopped(t *testing.T) {
	w := newWorld(t)
	engine, err := nic.New(nic.Config{Log: quiet})
	w.must(err)
	socket := filepath.Join(t.TempDir(), "nic.sock")
	served, err := shm.Serve(socket, engine, quiet)
	w.must(err)
	w.fabric = "shm://" + socket
	w.start("n1")
	n := w.nodes["n1"]
	if err := n.Failure(); err != nil {
		t.Fatal(err)
	}
	w.must(served.Close())
	w.must(engine.Close())
	select {
	case <-n.ShutdownRequested():
	case <-patient(t).Done():
		t.Fatal("it goes on without a fabric")
	}
	if err := n.Failure(); err == nil || !strings.Contains(err.Error(), "the fabric is gone") || n.Health() == nil {
		t.Fatalf("the failure is %v, the health %v", err, n.Health())
	}
}

// Whoever is left beside drained nodes has its copies there: without any it would take no writes.
func TestDrainedNodesHoldCopiesOfWhoIsLeftAlone(t *testing.T) {
	draining := meta.Marks{Draining: true}
	for _, c := range []struct {
		what  string
		alive []view.NodeID
		marks map[view.NodeID]meta.Marks
		want  string
	}{
		{"all stay", []view.NodeID{"a", "b", "c"}, nil, "[a b c]"},
		{"another stays", []view.NodeID{"a", "b", "c"}, map[view.NodeID]meta.Marks{"c": draining}, "[a b]"},
		{"it leaves itself", []view.NodeID{"a", "b", "c"}, map[view.NodeID]meta.Marks{"a": draining}, "[b c]"},
		{"the others leave", []view.NodeID{"a", "b", "c"}, map[view.NodeID]meta.Marks{"b": draining, "c": draining}, "[a b c]"},
		{"one leaves, one is dead", []view.NodeID{"a", "b"}, map[view.NodeID]meta.Marks{"b": draining}, "[a b]"},
		{"both are dead", []view.NodeID{"a"}, map[view.NodeID]meta.Marks{"b": draining}, "[a]"},
	} {
		s := &meta.Snapshot{
			Nodes: map[view.NodeID]meta.Node{"a": {ID: "a", Log: 7}, "b": {ID: "b"}, "c": {ID: "c"}},
			Logs:  map[record.LogID]meta.Log{7: {ID: 7, Node: "a"}},
			Marks: c.marks, Alive: map[view.NodeID]meta.Presence{},
		}
		for _, n := range c.alive {
			s.Alive[n] = meta.Presence{}
		}
		m := server.Membership(s, s.Logs[7], nil)
		var living []string
		for _, one := range m.Living {
			living = append(living, string(one.ID))
		}
		slices.Sort(living)
		if got := fmt.Sprint(living); got != c.want || m.Known != 3 {
			t.Errorf("%s: %s of %d", c.what, got, m.Known)
		}
	}
}
