package group_test

import (
	"errors"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

// plain is a device without WAIT and rings, as plain verbs are.
type plain struct{ *fabrictest.Spy }

func (p plain) Caps() fabric.Caps { return fabric.Caps{} }

func TestAFabricWithoutWaitHasFanOutOnly(t *testing.T) {
	s := prepare(t, "inproc", 2)
	dev := plain{&fabrictest.Spy{Device: s.client}}
	if _, err := group.Open(s.ctx(), dev, group.Spec{}, s.members()...); !errors.Is(err, fabric.ErrUnsupported) {
		t.Fatalf("a chain without WAIT: %v", err)
	}
	s.g = must(group.Open(s.ctx(), dev, group.Spec{Mode: group.FanOut}, s.members()...))(t)
	defer s.g.Close()
	s.ok(s.g.Write(s.ctx(), 8, []byte("one by one"), group.Durable))
	s.want(8, []byte("one by one"))
}

func TestACopyThatWaitsForRoomEndsWithTheGroup(t *testing.T) {
	n := must(inproc.New(nic.Config{}))(t)
	defer func() { check(t, n.Close()) }()
	open := func(name string) (fabric.Device, error) { return n.Device(name) }
	mem := must(fabric.NewMemory(memoryBytes))(t)
	defer mem.Close()
	r := group.NewReplica(device(t, open, "replica"), mem)
	defer r.Leave()
	s, dev := &scene{t: t}, plain{&fabrictest.Spy{Device: device(t, open, "client")}}
	g := must(group.Open(s.ctx(), dev, group.Spec{Mode: group.FanOut, Window: 2, MaxWrite: 64}, r))(t)
	check(t, n.Hold(dev.QPs()[1])) // The first one carries no operations.
	closed := make(chan error)
	go func() { closed <- g.Close() }()
	if p, err := g.Copy(s.ctx(), 0, memoryBytes/2, memoryBytes/2); err == nil {
		_, err = p.Wait(s.ctx())
		t.Fatalf("more requests than the queue holds were posted: %v", err)
	} else if !errors.Is(err, group.ErrClosed) {
		t.Fatalf("it ended with %v", err)
	}
	check(t, <-closed)
}
