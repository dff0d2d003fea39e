package group_test

import (
	"errors"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

// plain is a device without WAIT and rings, as plain verbs are. It remembers the
// queue pairs that were made with it.
type plain struct {
	fabric.Device
	qps *[]fabric.QP
}

func (p plain) Caps() fabric.Caps { return fabric.Caps{} }

func (p plain) NewDomain(tenant string) (fabric.Domain, error) {
	d, err := p.Device.NewDomain(tenant)
	return plainDomain{d, p.qps}, err
}

type plainDomain struct {
	fabric.Domain
	qps *[]fabric.QP
}

func (d plainDomain) NewQP(c fabric.QPConfig) (fabric.QP, error) {
	q, err := d.Domain.NewQP(c)
	*d.qps = append(*d.qps, q)
	return q, err
}

func TestAFabricWithoutWaitHasFanOutOnly(t *testing.T) {
	s := prepare(t, "inproc", 2)
	dev := plain{s.client, new([]fabric.QP)}
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
	s, dev := &scene{t: t}, plain{device(t, open, "client"), new([]fabric.QP)}
	g := must(group.Open(s.ctx(), dev, group.Spec{Mode: group.FanOut, Window: 2, MaxWrite: 64}, r))(t)
	check(t, n.Hold((*dev.qps)[1])) // The first one carries no operations.
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
