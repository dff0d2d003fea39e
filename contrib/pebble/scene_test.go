package ostropebble

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

// scene is a front end and its replicas in this process.
type scene struct {
	t        testing.TB
	dir      string
	opts     *pebble.Options
	network  *inproc.Network
	client   fabric.Device
	mems     []*fabric.Memory
	replicas []*group.Replica
	copies   []*Copy

	g    *group.Group
	log  *txn.Log
	db   *DB
	used int // front ends so far
}

func newScene(t testing.TB, memory int, opts *pebble.Options) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), opts: opts}
	s.network = must(inproc.New(nic.Config{}))(t)
	t.Cleanup(func() { check(t, s.network.Close()) })
	s.client = s.device("client")
	for i := range 3 {
		mem := must(fabric.NewMemory(memory))(t)
		t.Cleanup(func() { check(t, mem.Close()) })
		r := group.NewReplica(s.device(fmt.Sprintf("replica-%d", i)), mem)
		t.Cleanup(r.Leave)
		s.mems, s.replicas = append(s.mems, mem), append(s.replicas, r)
		s.copies = append(s.copies, nil)
		s.startCopy(i)
		t.Cleanup(func() { check(t, s.copies[i].Close()) })
	}
	return s
}

func (s *scene) device(name string) fabric.Device {
	s.t.Helper()
	d := must(s.network.Device(name))(s.t)
	s.t.Cleanup(func() { check(s.t, d.Close()) })
	return d
}

// startCopy opens a replica's copy.
func (s *scene) startCopy(i int) {
	s.t.Helper()
	r := txn.NewReader(s.replicas[i], s.mems[i])
	area := func(ctx context.Context, show func([]byte) error) error { return r.View(ctx, nil, show) }
	s.copies[i] = must(OpenCopy(filepath.Join(s.dir, fmt.Sprint(i)), area, CopyOptions{Pebble: s.opts, Wake: time.Millisecond}))(s.t)
}

// open opens the database as a new front end, from a replica.
func (s *scene) open(source int) {
	s.t.Helper()
	var members []group.Member
	var followers []Follower
	for i, r := range s.replicas {
		r.Leave()
		members, followers = append(members, r), append(followers, s.copies[i])
	}
	s.g = must(group.Open(s.ctx(), s.client, group.Spec{Window: 16}, members...))(s.t)
	s.log = must(txn.Initialize(s.ctx(), s.g, txn.Config{Background: true, LogBytes: 256 << 10}))(s.t)
	s.db = must(Open(s.ctx(), s.log, followers, filepath.Join(s.dir, fmt.Sprintf("front-%d", s.used)), Options{Pebble: s.opts, Source: source}))(s.t)
	s.used++
}

// crash ends the front end without a word to Pebble.
func (s *scene) crash() {
	s.t.Helper()
	check(s.t, s.g.Close())
	check(s.t, s.log.Close())
	s.db.writer.close()
}

// close ends the front end in order.
func (s *scene) close() {
	s.t.Helper()
	check(s.t, s.db.Close())
	check(s.t, s.log.Close())
	check(s.t, s.g.Close())
}

// ctx bounds what must happen.
func (s *scene) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

// wantEverywhere checks the front end and all copies.
func (s *scene) wantEverywhere(want map[string]string) {
	s.t.Helper()
	checkContent(s.t, s.db, want)
	for _, c := range s.copies {
		_ = must(c.Persist(s.ctx(), s.db.Position()))(s.t)
		checkContent(s.t, c.Reader(), want)
	}
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
