package fabrictest

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

func (s Suite) waits(t *testing.T) {
	s.testWithWait(t, "WAIT holds the queue until another has counted", func(t *testing.T, a, b *end) {
		a.mem.Bytes()[0] = 1
		q := a.newQP(fabric.QPConfig{})
		connect(t, q, q)
		counter := must(a.dom.NewCQ(0))(t)
		p := must(a.dom.NewQP(fabric.QPConfig{SendCQ: counter, RecvCQ: counter}))(t)
		connect(t, p, p)
		check(t, a.qp.Post(fabric.Wait(counter.Number(), 3), fabric.Write(b.at(0), a.piece(0, 1)).Signal(7)))
		for i := range uint64(3) {
			if b.mem.Bytes()[0] != 0 || a.sendCQ.Count() != i {
				t.Fatalf("released after %d of 3", i)
			}
			check(t, p.Post(fabric.Nop().Signal(i)))
			check(t, q.Post(fabric.Nop().Signal(i))) // Completes after the engine has seen the other.
			if c := next(t, a.sendCQ); c.ID == 7 && i < 2 {
				t.Fatal("released too early")
			} else if c.ID == 7 {
				return
			}
		}
		if c := next(t, a.sendCQ); c.ID != 7 || c.Status != fabric.OK || b.mem.Bytes()[0] != 1 {
			t.Fatalf("got %+v", c)
		}
	})
	s.testWithWait(t, "WAIT for what has happened already holds nothing", func(t *testing.T, a, _ *end) {
		a.ok(fabric.Nop())
		a.ok(fabric.Wait(a.sendCQ.Number(), 1))
	})
	s.testWithWait(t, "WAIT for a RECV forwards a message untouched by the program", func(t *testing.T, a, b *end) {
		back := b.newQP(fabric.QPConfig{})
		home := a.newQP(fabric.QPConfig{})
		connect(t, back, home)
		check(t, b.qp.PostRecv(fabric.Recv(1, b.piece(0, 100))))
		check(t, back.Post(fabric.Wait(b.recvCQ.Number(), 1), fabric.Write(a.at(5000), b.piece(0, 100)), fabric.WriteImm(a.at(0), 6)))
		check(t, home.PostRecv(fabric.Recv(2)))
		a.fill(8)
		a.ok(fabric.Send(a.piece(0, 100)))
		if c := next(t, a.recvCQ); c.Imm != 6 || !bytes.Equal(a.mem.Bytes()[5000:5100], a.mem.Bytes()[:100]) {
			t.Fatalf("got %+v, or other bytes", c)
		}
	})
	s.testWithWait(t, "WAIT on a queue that only counts does not go on when a connection ends", func(t *testing.T, a, b *end) {
		counter := must(b.dom.NewCQ(0))(t)
		p := must(b.dom.NewQP(fabric.QPConfig{SendCQ: b.sendCQ, RecvCQ: counter}))(t)
		q := a.newQP(fabric.QPConfig{})
		connect(t, p, q)
		check(t, p.PostRecv(fabric.Recv(1), fabric.Recv(2)))
		self := b.newQP(fabric.QPConfig{})
		connect(t, self, self)
		check(t, self.Post(fabric.Wait(counter.Number(), 2), fabric.Nop().Signal(7)))
		check(t, q.Post(fabric.Send()))
		check(t, counter.WaitPast(t.Context(), 0))
		check(t, q.Close())
		for p.State() != fabric.Failed {
			runtime.Gosched()
		}
		b.ok(fabric.Nop()) // Its engine has seen the end of p.
		if n := b.sendCQ.Count(); n != 1 || counter.Count() != 1 {
			t.Fatalf("%d requests ended, %d messages were counted", n, counter.Count())
		}
	})
	s.testWithWait(t, "WAIT on a queue of another domain is refused", func(t *testing.T, a, b *end) {
		other := must(a.dev.NewDomain("other"))(t)
		cq := must(other.NewCQ(8))(t)
		wantStatus(t, a.do(fabric.Wait(cq.Number(), 0)), fabric.LocalAccess)
	})
	s.testWithWait(t, "a queue pair that waits can be closed", func(t *testing.T, a, _ *end) {
		check(t, a.qp.Post(fabric.Wait(a.recvCQ.Number(), 1)))
		check(t, a.qp.Close())
	})
}

func (s Suite) testWithWait(t *testing.T, name string, f func(t *testing.T, a, b *end)) {
	s.test(t, name, func(t *testing.T, a, b *end) {
		if !a.dev.Caps().Wait {
			t.Skip("this provider has no WAIT")
		}
		f(t, a, b)
	})
}
