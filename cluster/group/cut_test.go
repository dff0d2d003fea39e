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

// A message that is cut lies in a slot in part, and the rest there is of a former one.
func TestAMessageCutAtAnyByteDoesNotRepeatAFormerOne(t *testing.T) {
	net := must(inproc.New(nic.Config{}))(t)
	t.Cleanup(func() { check(t, net.Close()) })
	open := func(name string) (fabric.Device, error) { return net.Device(name) }
	s := &scene{t: t}
	client := &fabrictest.Spy{Device: device(t, open, "client")}
	for _, name := range []string{"first", "second"} {
		mem := must(fabric.NewMemory(4096))(t)
		t.Cleanup(func() { check(t, mem.Close()) })
		r := group.NewReplica(device(t, open, name), mem)
		t.Cleanup(r.Leave)
		s.mems, s.replicas = append(s.mems, mem), append(s.replicas, r)
	}
	for cut := uint64(0); ; cut++ {
		for _, m := range s.mems {
			clear(m.Bytes())
		}
		client.Forget()
		g := must(group.Open(s.ctx(), client, group.Spec{Window: 1, Slots: 2, MaxWrite: 16}, s.members()...))(t)
		s.ok(g.Write(s.ctx(), 0, []byte("old")))
		s.ok(g.Copy(s.ctx(), 100, 0, 3)) // In slot 1, and so is the one that is cut.
		s.ok(g.Write(s.ctx(), 0, []byte("new")))
		for _, q := range client.QPs() {
			if q.Done() > 0 {
				check(t, net.CutAfter(q, cut))
			}
		}
		p, err := g.Write(s.ctx(), 200, []byte("cut"))
		if err == nil {
			_, err = p.Wait(s.ctx())
		}
		if err != nil && !errors.Is(err, group.ErrBroken) {
			t.Fatal(err)
		}
		check(t, g.Close())
		for i, r := range s.replicas {
			r.Leave()
			got := s.mems[i].Bytes()
			if string(got[:3]) != "new" || string(got[100:103]) != "old" {
				t.Fatalf("cut at %d: replica %d has %q and %q", cut, i, got[:3], got[100:103])
			}
			if there := string(got[200:203]); there != "cut" && there != "\x00\x00\x00" {
				t.Fatalf("cut at %d: replica %d has %q", cut, i, there)
			}
		}
		if err == nil {
			return
		}
	}
}

func TestAReadCutAtAnyByteFails(t *testing.T) {
	net := must(inproc.New(nic.Config{}))(t)
	t.Cleanup(func() { check(t, net.Close()) })
	open := func(name string) (fabric.Device, error) { return net.Device(name) }
	s := &scene{t: t}
	client := &fabrictest.Spy{Device: device(t, open, "client")}
	mem := must(fabric.NewMemory(4096))(t)
	t.Cleanup(func() { check(t, mem.Close()) })
	r := group.NewReplica(device(t, open, "replica"), mem)
	t.Cleanup(r.Leave)
	want := "forty bytes that are read in one request"
	copy(mem.Bytes(), want)
	for cut := uint64(0); ; cut++ {
		client.Forget()
		g := must(group.Open(s.ctx(), client, group.Spec{Window: 1, MaxWrite: 16}, r))(t)
		for _, q := range client.QPs() {
			check(t, net.CutAfter(q, cut))
		}
		got := make([]byte, len(want))
		err := g.Read(s.ctx(), 0, 0, got)
		if err == nil && string(got) != want || err != nil && !errors.Is(err, group.ErrBroken) {
			t.Fatalf("cut at %d: it reads %q, %v", cut, got, err)
		}
		check(t, g.Close())
		r.Leave()
		if err == nil {
			return
		}
	}
}
