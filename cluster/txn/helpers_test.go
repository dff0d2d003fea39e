package txn_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

const memoryBytes = 64 << 10

// small is a group that is made quickly.
var small = group.Spec{Window: 16, Slots: 32, MaxWrite: 512}

// scene is a client and its replicas in this process.
type scene struct {
	t        testing.TB
	spec     group.Spec
	net      *inproc.Network
	client   fabric.Device
	spies    []*fabrictest.Spy
	mems     []*fabric.Memory
	replicas []*group.Replica
	g        *group.Group
	l        *txn.Log
}

// newScene has n replicas with a log on them.
func newScene(t testing.TB, s group.Spec, c txn.Config, n int) *scene {
	t.Helper()
	sc := prepare(t, s, n)
	sc.open(c)
	return sc
}

// prepare makes a scene without a group.
func prepare(t testing.TB, s group.Spec, n int) *scene { return prepareSized(t, s, n, memoryBytes) }

func prepareSized(t testing.TB, s group.Spec, n, bytes int) *scene {
	t.Helper()
	net := must(inproc.New(nic.Config{}))(t)
	t.Cleanup(func() { check(t, net.Close()) })
	sc := &scene{t: t, spec: s, net: net}
	sc.client = sc.device("client")
	for i := range n {
		mem := must(fabric.NewMemory(bytes))(t)
		t.Cleanup(func() { check(t, mem.Close()) })
		sc.mems = append(sc.mems, mem)
		sc.spies = append(sc.spies, &fabrictest.Spy{Device: sc.device(fmt.Sprintf("replica-%d", i))})
		sc.replicas = append(sc.replicas, group.NewReplica(sc.spies[i], mem))
		t.Cleanup(func() { sc.replicas[i].Leave() })
	}
	return sc
}

func (s *scene) device(name string) fabric.Device {
	s.t.Helper()
	d := must(s.net.Device(name))(s.t)
	s.t.Cleanup(func() { check(s.t, d.Close()) })
	return d
}

// open makes a group of the replicas and a log on it.
func (s *scene) open(c txn.Config) {
	s.t.Helper()
	g := must(group.Open(s.ctx(), s.client, s.spec, s.members()...))(s.t)
	s.t.Cleanup(func() { check(s.t, g.Close()) })
	l := must(txn.Initialize(s.ctx(), g, c))(s.t)
	s.t.Cleanup(func() { check(s.t, l.Close()) })
	s.g, s.l = g, l
}

// close ends log and group, and waits until the replicas know.
func (s *scene) close() {
	s.t.Helper()
	check(s.t, s.l.Close())
	check(s.t, s.g.Close())
	s.leave()
}

// leave lets every replica go.
func (s *scene) leave() {
	for i, r := range s.replicas {
		r.Leave()
		s.spies[i].Forget()
	}
}

func (s *scene) members() (out []group.Member) {
	for _, r := range s.replicas {
		out = append(out, r)
	}
	return out
}

// ctx bounds what must happen.
func (s *scene) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

// want checks bytes of the data area of every replica.
func (s *scene) want(off uint64, there []byte) {
	s.t.Helper()
	for i, m := range s.mems {
		if got := m.Bytes()[s.l.DataOffset()+off:][:len(there)]; !bytes.Equal(got, there) {
			s.t.Fatalf("replica %d has %q at %d, want %q", i, got, off, there)
		}
	}
}

func entry(off uint64, data string) txn.Entry { return txn.Entry{Offset: off, Data: []byte(data)} }

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
