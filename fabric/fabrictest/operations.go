package fabrictest

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

func pause() { runtime.Gosched() }

func (s Suite) operations(t *testing.T) {
	s.test(t, "a completed WRITE is in the target's memory, and nowhere beside", testWrite)
	s.test(t, "pieces of many places are written as one", testGather)
	s.test(t, "READ brings what is there, into all pieces", testRead)
	s.test(t, "requests of no bytes complete", func(t *testing.T, a, b *end) {
		a.ok(fabric.Write(b.at(0)))
		a.ok(fabric.Write(b.at(regionBytes)))
		a.ok(fabric.Read(b.at(10)))
		a.ok(fabric.Nop())
	})
	s.test(t, "every size arrives", func(t *testing.T, a, b *end) {
		a.fill(3)
		for _, n := range []uint32{1, 7, 8, 9, 63, 64, 65, 127, 128, 4095, 4096, 65535, 65536, 65537, 300_001, regionBytes} {
			clear(b.mem.Bytes())
			a.ok(fabric.Write(b.at(0), a.piece(0, n)))
			if !bytes.Equal(b.mem.Bytes()[:n], a.mem.Bytes()[:n]) {
				t.Fatalf("%d bytes written differ", n)
			}
			a.ok(fabric.Read(b.at(0), a.piece(0, n)))
		}
	})
	s.test(t, "requests of many megabytes complete, whenever the way is free for more", s.testLong)
	s.test(t, "both ends are initiators", func(t *testing.T, a, b *end) {
		a.mem.Bytes()[5], b.mem.Bytes()[6] = 55, 66
		check(t, a.qp.Post(fabric.Write(b.at(5), a.piece(5, 1)).Signal(1)))
		check(t, b.qp.Post(fabric.Write(a.at(6), b.piece(6, 1)).Signal(2)))
		wantStatus(t, next(t, a.sendCQ), fabric.OK)
		wantStatus(t, next(t, b.sendCQ), fabric.OK)
		if a.mem.Bytes()[6] != 66 || b.mem.Bytes()[5] != 55 {
			t.Fatal("a byte is missing")
		}
	})
	s.test(t, "a queue pair connected to itself copies within one device", testLoopback)
	s.test(t, "an unsignaled request completes in silence", func(t *testing.T, a, b *end) {
		a.mem.Bytes()[0] = 9
		check(t, a.qp.Post(fabric.Write(b.at(0), a.piece(0, 1)), fabric.Nop().Signal(5)))
		if c := next(t, a.sendCQ); c.ID != 5 || b.mem.Bytes()[0] != 9 {
			t.Fatalf("got %+v, byte %d", c, b.mem.Bytes()[0])
		}
		if n := a.sendCQ.Count(); n != 1 {
			t.Fatalf("%d completions for one signaled request", n)
		}
	})
}

// testLong has requests stop and go on many times, for several share the way. Of each queue pair nothing else is in flight that
// would continue it.
func (s Suite) testLong(t *testing.T, a, b *end) {
	n := s.Rounds * (80 << 10)
	from, to := newMemory(t, n), newMemory(t, n)
	here := must(a.dom.Register(from, fabric.Everything))(t)
	there := must(b.dom.Register(to, fabric.Everything))(t)
	qps := []fabric.QP{a.qp}
	for range 3 {
		q, peer := a.newQP(fabric.QPConfig{}), b.newQP(fabric.QPConfig{})
		connect(t, q, peer)
		qps = append(qps, q)
	}
	for range 4 {
		for _, w := range []fabric.WR{
			fabric.Write(there.Info().At(0), here.Piece(0, uint32(n))), fabric.Read(there.Info().At(0), here.Piece(0, uint32(n))),
		} {
			for _, q := range qps {
				check(t, q.Post(w.Signal(1)))
			}
			for range qps {
				wantStatus(t, next(t, a.sendCQ), fabric.OK)
			}
		}
	}
}

func testWrite(t *testing.T, a, b *end) {
	a.fill(1)
	a.ok(fabric.Write(b.at(1000), a.piece(50, 777)))
	got := b.mem.Bytes()
	if !bytes.Equal(got[1000:1777], a.mem.Bytes()[50:827]) {
		t.Fatal("the bytes differ")
	}
	if len(bytes.Trim(got[:1000], "\x00")) != 0 || len(bytes.Trim(got[1777:], "\x00")) != 0 {
		t.Fatal("bytes landed beside the target")
	}
}

func testGather(t *testing.T, a, b *end) {
	a.fill(2)
	m := a.mem.Bytes()
	a.ok(fabric.Write(b.at(3), a.piece(900, 10), a.piece(0, 0), a.piece(100, 1000), a.piece(5, 1)))
	want := bytes.Join([][]byte{m[900:910], m[100:1100], m[5:6]}, nil)
	if !bytes.Equal(b.mem.Bytes()[3:3+len(want)], want) {
		t.Fatal("the pieces are not in order")
	}
}

func testRead(t *testing.T, a, b *end) {
	b.fill(9)
	a.ok(fabric.Read(b.at(77), a.piece(0, 10), a.piece(5000, 2000), a.piece(100, 3)))
	got := bytes.Join([][]byte{a.mem.Bytes()[:10], a.mem.Bytes()[5000:7000], a.mem.Bytes()[100:103]}, nil)
	if !bytes.Equal(got, b.mem.Bytes()[77:77+2013]) {
		t.Fatal("the bytes differ")
	}
}

func testLoopback(t *testing.T, a, _ *end) {
	q := a.newQP(fabric.QPConfig{})
	connect(t, q, q)
	a.fill(4)
	want := bytes.Clone(a.mem.Bytes()[:5000])
	check(t, q.Post(fabric.Write(a.at(500_000), a.piece(0, 5000)).Signal(1)))
	wantStatus(t, next(t, a.sendCQ), fabric.OK)
	if !bytes.Equal(a.mem.Bytes()[500_000:505_000], want) {
		t.Fatal("the copy differs")
	}
}
