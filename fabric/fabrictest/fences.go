package fabrictest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// fence is a way of the target to make an initiator stop.
type fence struct {
	name string
	do   func(b *end) error
}

var fencesOfTarget = []fence{
	{"closing the queue pair", func(b *end) error { return b.qp.Close() }},
	{"revoking the region", func(b *end) error { return b.reg.Revoke() }},
	{"banning the peer", func(b *end) error { return b.dev.Ban("a") }},
	{"closing the domain", func(b *end) error { return b.dom.Close() }},
	{"closing the device", func(b *end) error { return b.dev.Close() }},
}

func (s Suite) fences(t *testing.T) {
	for _, f := range fencesOfTarget {
		s.test(t, "after "+f.name+" nothing lands", func(t *testing.T, a, b *end) {
			a.ok(fabric.Write(b.at(0), a.piece(0, 8)))
			check(t, f.do(b))
			a.fill(0xff)
			image := bytes.Clone(b.mem.Bytes())
			if c := a.do(fabric.Write(b.at(0), a.piece(0, 8))); c.Status == fabric.OK {
				t.Fatal("a WRITE succeeded")
			}
			if !bytes.Equal(image, b.mem.Bytes()) {
				t.Fatal("bytes landed")
			}
		})
		t.Run(f.name+" amid a stream of writes", func(t *testing.T) { s.fenceAmidWrites(t, f) })
	}
	s.test(t, "closing a queue pair breaks its peer", func(t *testing.T, a, b *end) {
		check(t, b.qp.PostRecv(fabric.Recv(5, b.piece(0, 8))))
		check(t, a.qp.Close())
		if c := next(t, b.recvCQ); c.ID != 5 || c.Status != fabric.Flushed {
			t.Fatalf("the peer's RECV: %+v", c)
		}
		if b.qp.State() != fabric.Failed || a.qp.State() != fabric.Retired {
			t.Fatalf("states %v and %v", a.qp.State(), b.qp.State())
		}
		if err := a.qp.Post(fabric.Nop()); !errors.Is(err, fabric.ErrClosed) {
			t.Fatalf("a post on a closed queue pair: %v", err)
		}
	})
	s.test(t, "a banned peer cannot come back", func(t *testing.T, a, b *end) {
		check(t, b.dev.Ban("a"))
		p, q := a.newQP(fabric.QPConfig{}), b.newQP(fabric.QPConfig{})
		if err := q.Connect(p.Endpoint()); !errors.Is(err, fabric.ErrBanned) {
			t.Fatalf("connecting to a banned peer: %v", err)
		}
		check(t, p.Connect(q.Endpoint()))
		check(t, p.Post(fabric.Write(b.at(0), a.piece(0, 8)).Signal(1)))
		if c := next(t, a.sendCQ); c.Status == fabric.OK {
			t.Fatal("a banned peer wrote")
		}
	})
	s.test(t, "who has not the token cannot connect", func(t *testing.T, a, b *end) {
		p, q := a.newQP(fabric.QPConfig{}), b.newQP(fabric.QPConfig{})
		forged := q.Endpoint()
		forged.Token++
		check(t, q.Connect(p.Endpoint()))
		check(t, p.Connect(forged))
		check(t, p.Post(fabric.Write(b.at(0), a.piece(0, 8)).Signal(1)))
		if c := next(t, a.sendCQ); c.Status == fabric.OK {
			t.Fatal("a stranger wrote")
		}
	})
	s.test(t, "a device that goes fails its peers", func(t *testing.T, a, b *end) {
		check(t, b.dev.Close())
		eventually(t, "the peer fails", func() bool { return a.qp.State() == fabric.Failed })
		check(t, b.dev.Close())
	})
}

// fenceAmidWrites fences while long writes stream in, and then looks whether the
// memory still changes.
func (s Suite) fenceAmidWrites(t *testing.T, f fence) {
	for round := range s.Rounds/20 + 2 {
		a, b := s.pair(t)
		const n = 64 << 10
		posted := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := uint64(0); ; i++ {
				if i == uint64(2+round%5) {
					close(posted)
				}
				for off := 0; off < n; off += 8 {
					a.word(off).Store(i)
				}
				err := a.qp.Post(fabric.Write(b.at(0), a.piece(0, n)), fabric.Write(b.at(n), a.piece(0, n)).Signal(i))
				if err != nil || next(t, a.sendCQ).Status != fabric.OK {
					return
				}
			}
		}()
		<-posted
		check(t, f.do(b))
		image := bytes.Clone(b.mem.Bytes()[:2*n])
		<-done // The initiator has found out; whatever was on its way has arrived or never will.
		if !bytes.Equal(image, b.mem.Bytes()[:2*n]) {
			t.Fatalf("round %d: the memory changed after the fence", round)
		}
	}
}
