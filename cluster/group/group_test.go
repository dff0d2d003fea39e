package group_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
	"github.com/ostrodb/ostro/fabric/tcp"
)

const memoryBytes = 64 << 10

// openers open a device by name on each provider; those of one opener reach each other.
var openers = map[string]func(t testing.TB) func(name string) (fabric.Device, error){
	"inproc": func(t testing.TB) func(string) (fabric.Device, error) {
		n := must(inproc.New(nic.Config{}))(t)
		t.Cleanup(func() { check(t, n.Close()) })
		return func(name string) (fabric.Device, error) { return n.Device(name) }
	},
	"shm": func(t testing.TB) func(string) (fabric.Device, error) {
		e := must(nic.New(nic.Config{}))(t)
		path := filepath.Join(t.TempDir(), "nic.sock")
		s := must(shm.Serve(path, e, nil))(t)
		t.Cleanup(func() { check(t, s.Close()); check(t, e.Close()) })
		return func(name string) (fabric.Device, error) { return shm.Open(path, name) }
	},
	"tcp": func(t testing.TB) func(string) (fabric.Device, error) {
		return func(name string) (fabric.Device, error) {
			h := must(tcp.Open(tcp.Config{Listen: "127.0.0.1:0", Secret: []byte("a secret of the tests")}))(t)
			t.Cleanup(func() { check(t, h.Close()) })
			return h.Device(name)
		}
	},
}

// providers are those that everywhere goes through.
var providers = []string{"inproc", "shm", "tcp"}

var modes = []group.Mode{group.Chain, group.NaiveEvents, group.NaivePolling, group.FanOut}

// everywhere runs a test for every provider and mode.
func everywhere(t *testing.T, f func(t *testing.T, provider string, mode group.Mode)) {
	for _, provider := range providers {
		for _, mode := range modes {
			t.Run(fmt.Sprintf("%s/%s", provider, mode), func(t *testing.T) { f(t, provider, mode) })
		}
	}
}

// scene is a client and its replicas in this process.
type scene struct {
	t        testing.TB
	g        *group.Group
	client   fabric.Device
	devs     []fabric.Device
	mems     []*fabric.Memory
	replicas []*group.Replica
}

func newScene(t testing.TB, provider string, s group.Spec, n int) *scene {
	t.Helper()
	sc := prepare(t, provider, n)
	sc.open(s)
	return sc
}

func (s *scene) open(spec group.Spec) {
	s.t.Helper()
	s.g = must(group.Open(s.ctx(), s.client, spec, s.members()...))(s.t)
	s.t.Cleanup(func() { check(s.t, s.g.Close()) })
}

// prepare makes a scene whose group is not opened.
func prepare(t testing.TB, provider string, n int) *scene {
	t.Helper()
	return prepareBytes(t, provider, n, memoryBytes)
}

func prepareBytes(t testing.TB, provider string, n, bytesEach int) *scene {
	t.Helper()
	s := &scene{t: t}
	s.fill(openers[provider](t), n, bytesEach)
	return s
}

// fill opens the devices of a client and its replicas.
func (s *scene) fill(open func(string) (fabric.Device, error), n, bytesEach int) {
	s.t.Helper()
	s.client = device(s.t, open, "client")
	for i := range n {
		d := device(s.t, open, fmt.Sprintf("replica-%d", i))
		mem := must(fabric.NewMemory(bytesEach))(s.t)
		s.t.Cleanup(func() { check(s.t, mem.Close()) })
		r := group.NewReplica(d, mem)
		s.t.Cleanup(r.Leave)
		s.devs, s.mems, s.replicas = append(s.devs, d), append(s.mems, mem), append(s.replicas, r)
	}
}

func device(t testing.TB, open func(string) (fabric.Device, error), name string) fabric.Device {
	t.Helper()
	d := must(open(name))(t)
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

func (s *scene) members() []group.Member {
	var out []group.Member
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

// ok waits for an operation that must end well.
func (s *scene) ok(p *group.Pending, err error) group.Result {
	s.t.Helper()
	check(s.t, err)
	return must(p.Wait(s.ctx()))(s.t)
}

// want checks bytes on every replica.
func (s *scene) want(off int, bytesThere []byte) {
	s.t.Helper()
	for i, m := range s.mems {
		if got := m.Bytes()[off:][:len(bytesThere)]; !bytes.Equal(got, bytesThere) {
			s.t.Fatalf("replica %d has %q at %d, want %q", i, got, off, bytesThere)
		}
	}
}

func (s *scene) word(i, off int) uint64 {
	return binary.LittleEndian.Uint64(s.mems[i].Bytes()[off:])
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
