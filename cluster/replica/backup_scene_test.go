package replica_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

const (
	segmentBytes = 64 << 10
	logID        = record.LogID(0xabc)
)

var secret = []byte("shared by all")

// text is a segment as a primary writes it, all of it.
type text struct {
	id      record.SegmentID
	bytes   []byte // zeroed beyond its end
	ends    []int  // of its batches
	batches []record.BatchID
	keys    []string // of its puts, in order
	end     int
	closed  bool
	log     record.LogID
	chain   record.Chain
}

func newText(log record.LogID, id record.SegmentID) *text {
	x := &text{log: log, id: id, bytes: make([]byte, segmentBytes), chain: record.NewChain(id)}
	x.took(record.EncodeSegmentHeader(x.bytes, log, id, 1_700_000_000_000, segmentBytes))
	return x
}

func (x *text) took(n int) {
	x.chain.Add(record.PtrOf(x.bytes[x.end:]))
	x.end += n
}

// batch adds puts and a seal.
func (x *text) batch(n record.BatchID, puts int, closed bool) *text {
	for i := range puts {
		key := fmt.Sprintf("key-%d-%d-%d-%d", x.id, n, len(x.batches), i) // Side segments have no n.
		h := record.Header{Type: record.TypePut, Version: uint64(n)<<8 | uint64(i)}
		if i%5 == 4 {
			h.Type = record.TypeTombstone
		}
		x.took(record.Encode(x.bytes[x.end:], &h, []byte(key), []byte(strings.Repeat("v", int(n)%40)), true))
		x.keys = append(x.keys, key)
	}
	x.chain.PutSeal(x.bytes[x.end:], n, closed)
	x.end += record.SealBytes
	x.ends, x.batches, x.closed = append(x.ends, x.end), append(x.batches, n), closed
	return x
}

func (x *text) closing() replica.Closing {
	return replica.Closing{End: uint32(x.end), Batch: x.batches[len(x.batches)-1], Sum: replica.Sum(x.bytes[:x.end])}
}

// closedText has some batches from first on and a closing seal.
func closedText(log record.LogID, id record.SegmentID, first record.BatchID) *text {
	x := newText(log, id)
	for i := range record.BatchID(9) {
		x.batch(first+i, 3, false)
	}
	return x.batch(first+9, 0, true)
}

// scene is backups that can be called, and a primary that calls them.
type scene struct {
	t       *testing.T
	network *inproc.Network
	options func(*replica.BackupOptions)
	hosts   map[view.NodeID]*host
	mu      sync.Mutex
	addrs   map[view.NodeID]string
	pools   []*peer.Pool // of all who call
	pool    *peer.Pool   // the primary's
	device  fabric.Device
	dom     fabric.Domain
	cq      fabric.CQ
}

// host is one backup.
type host struct {
	*replica.Backup
	s      *scene
	node   view.NodeID
	dir    string
	dev    fabric.Device
	server *peer.Server
	l      net.Listener
	wait   sync.WaitGroup
	up     bool
}

func newScene(t *testing.T, backups int, options ...func(*replica.BackupOptions)) *scene {
	t.Helper()
	s := &scene{
		t: t, network: must(inproc.New(nic.Config{}))(t), hosts: map[view.NodeID]*host{}, addrs: map[view.NodeID]string{},
		options: func(o *replica.BackupOptions) {
			for _, f := range options {
				f(o)
			}
		},
	}
	t.Cleanup(func() { check(t, s.network.Close()) })
	s.pool = s.poolOf("primary")
	s.device = must(s.network.Device("primary"))(t)
	t.Cleanup(func() { check(t, s.device.Close()) })
	s.dom = must(s.device.NewDomain("primary"))(t)
	s.cq = must(s.dom.NewCQ(64))(t)
	for i := range backups {
		id := view.NodeID(fmt.Sprintf("b%d", i+1))
		h := &host{s: s, node: id, dir: filepath.Join(t.TempDir(), string(id))}
		s.hosts[id] = h
		h.start()
		t.Cleanup(h.stop)
	}
	return s
}

func (s *scene) nodes() []view.NodeID {
	var list []view.NodeID
	for i := range s.hosts {
		list = append(list, i)
	}
	return list
}

func (s *scene) poolOf(node view.NodeID) *peer.Pool {
	s.t.Helper()
	p := must(peer.NewPool(peer.PoolOptions{Node: node, Secret: secret, DialTimeout: time.Minute, Address: s.address}))(s.t)
	s.t.Cleanup(func() { check(s.t, p.Close()) })
	s.pools = append(s.pools, p)
	return p
}

func (s *scene) address(n view.NodeID) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addrs[n] == "" {
		return "", errors.New("it is down")
	}
	return s.addrs[n], nil
}

func (h *host) start() {
	t := h.s.t
	t.Helper()
	h.dev = must(h.s.network.Device(string(h.node)))(t)
	o := replica.BackupOptions{
		Dir: h.dir, Device: h.dev, Node: h.node, SegmentBytes: segmentBytes, Buffers: 16, Ready: 2, FlushRate: 1 << 30, ScrubRate: -1,
		Log: slog.New(slog.DiscardHandler),
	}
	h.s.options(&o)
	h.Backup = must(replica.OpenBackup(o))(t)
	h.server = must(peer.NewServer(peer.ServerOptions{Node: h.node, Secret: secret}))(t)
	h.Handle(h.server)
	h.l = must(net.Listen("tcp", "127.0.0.1:0"))(t)
	h.wait.Go(h.accept)
	h.s.mu.Lock()
	h.s.addrs[h.node] = h.l.Addr().String()
	h.s.mu.Unlock()
	h.up = true
}

func (h *host) accept() {
	for {
		c, err := h.l.Accept()
		if err != nil {
			return
		}
		h.wait.Go(func() { h.server.ServeConn(c) })
	}
}

func (h *host) stop() {
	if !h.up {
		return
	}
	h.up = false
	h.s.mu.Lock()
	delete(h.s.addrs, h.node)
	h.s.mu.Unlock()
	_ = h.l.Close()
	check(h.s.t, h.server.Close())
	h.wait.Wait()
	check(h.s.t, h.Close())
	check(h.s.t, h.dev.Close())
	// A call on a connection that has not yet seen its end would be lost.
	for _, p := range h.s.pools {
		p.Drop(h.node)
	}
}

func (h *host) restart() {
	h.s.t.Helper()
	h.stop()
	h.start()
}

func (s *scene) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *scene) call(to view.NodeID, method string, head any, bulk []byte, answer any) error {
	_, err := s.pool.Call(s.ctx(), to, method, head, bulk, answer)
	return err
}

// line is a primary's queue pair to a backup.
type line struct {
	s  *scene
	to view.NodeID
	qp fabric.QP
}

func (s *scene) connect(to view.NodeID, log record.LogID) *line {
	s.t.Helper()
	q := must(s.dom.NewQP(fabric.QPConfig{SendCQ: s.cq, RecvCQ: s.cq}))(s.t)
	var a replica.ConnectAnswer
	check(s.t, s.call(to, replica.MethodConnect, replica.ConnectRequest{Log: log, Endpoints: []fabric.Endpoint{q.Endpoint()}}, nil, &a))
	check(s.t, q.Connect(a.Endpoints[0]))
	check(s.t, q.Ready(s.ctx()))
	return &line{s, to, q}
}

// write puts bytes into a replica and tells how that ended.
func (l *line) write(at fabric.Target, bytes []byte) fabric.Status {
	t := l.s.t
	t.Helper()
	if len(bytes) == 0 {
		return fabric.OK
	}
	mem := must(fabric.NewMemory(len(bytes)))(t)
	defer mem.Close()
	copy(mem.Bytes(), bytes)
	reg := must(l.s.dom.Register(mem, fabric.LocalWrite))(t)
	defer func() { check(t, reg.Revoke()) }()
	if err := l.qp.Post(fabric.Write(at, reg.Piece(0, uint32(len(bytes)))).Signal(1)); err != nil {
		return fabric.Flushed
	}
	var c [1]fabric.Completion
	for l.s.cq.Poll(c[:]) == 0 {
		check(t, l.s.cq.Wait(l.s.ctx()))
	}
	return c[0].Status
}

func roster(number uint64, safe record.BatchID, segments ...record.SegmentID) replica.Roster {
	return replica.Roster{Number: number, Version: 1, Safe: safe, Segments: replica.RunsOf(segments...)}
}

func openRequest(id record.SegmentID, r replica.Roster) replica.OpenRequest {
	return replica.OpenRequest{Log: logID, Segment: id, Version: r.Version, Bytes: segmentBytes, Roster: r}
}

func (s *scene) open(to view.NodeID, q replica.OpenRequest) (replica.OpenAnswer, error) {
	var a replica.OpenAnswer
	err := s.call(to, replica.MethodOpen, q, nil, &a)
	return a, err
}

// fill opens a replica and writes the first n bytes of a segment to it.
func (s *scene) fill(l *line, x *text, n int, r replica.Roster) replica.OpenAnswer {
	s.t.Helper()
	a := must(s.open(l.to, openRequest(x.id, r)))(s.t)
	if st := l.write(a.Region.At(0), x.bytes[:n]); st != fabric.OK {
		s.t.Fatalf("write %d bytes: %v", n, st)
	}
	return a
}

func (s *scene) put(to view.NodeID, x *text, r replica.Roster) error {
	return s.call(to, replica.MethodPut, replica.PutRequest{Log: x.log, Segment: x.id, Closing: x.closing(), Roster: r}, x.bytes[:x.end], nil)
}

func (s *scene) survey(to view.NodeID, fence bool) replica.SurveyAnswer {
	s.t.Helper()
	var a replica.SurveyAnswer
	check(s.t, s.call(to, replica.MethodSurvey, replica.SurveyRequest{Log: logID, Fence: fence}, nil, &a))
	return a
}

// one is the only replica that a backup has.
func (s *scene) one(to view.NodeID) replica.ReplicaInfo {
	s.t.Helper()
	a := s.survey(to, false)
	if len(a.Replicas) != 1 {
		s.t.Fatalf("%d replicas: %+v", len(a.Replicas), a.Replicas)
	}
	return a.Replicas[0]
}

// whole is the bytes of a segment that a backup has.
func (s *scene) whole(to view.NodeID, id record.SegmentID) ([]byte, error) {
	st, err := s.pool.Stream(s.ctx(), to, replica.MethodFetch, replica.FetchRequest{Log: logID, Segment: id, Cut: replica.AllBatches, Whole: true})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	var all []byte
	for {
		bulk, last, err := st.Next(nil)
		if err != nil || last {
			return all, err
		}
		all = append(all, bulk...)
	}
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	for _, e := range must(os.ReadDir(dir))(t) {
		names = append(names, e.Name())
	}
	return names
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
