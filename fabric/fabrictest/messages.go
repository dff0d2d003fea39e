package fabrictest

import (
	"bytes"
	"testing"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

func (s Suite) messages(t *testing.T) {
	s.test(t, "a SEND fills the pieces of a RECV in order", testScatter)
	s.test(t, "RECVs are taken in posting order", func(t *testing.T, a, b *end) {
		for i := range uint64(5) {
			check(t, b.qp.PostRecv(fabric.Recv(i, b.piece(i*100, 100))))
		}
		for i := range uint64(5) {
			a.mem.Bytes()[0] = byte(i + 1)
			a.ok(fabric.Send(a.piece(0, 1)))
			if c := next(t, b.recvCQ); c.ID != i || c.Bytes != 1 || b.mem.Bytes()[i*100] != byte(i+1) {
				t.Fatalf("message %d: %+v", i, c)
			}
		}
	})
	s.test(t, "WRITE_IMM completes a RECV when its bytes are there", func(t *testing.T, a, b *end) {
		a.fill(1)
		check(t, b.qp.PostRecv(fabric.Recv(8)))
		a.ok(fabric.WriteImm(b.at(64), 0xfeedbeef, a.piece(0, 3000)))
		c := next(t, b.recvCQ)
		if c.ID != 8 || c.Imm != 0xfeedbeef || !c.HasImm || c.Bytes != 3000 {
			t.Fatalf("got %+v", c)
		}
		if !bytes.Equal(b.mem.Bytes()[64:3064], a.mem.Bytes()[:3000]) {
			t.Fatal("the bytes differ")
		}
	})
	s.test(t, "a SEND without a RECV waits for one, and all behind it", testReceiverNotReady)
	t.Run("a SEND that waits too long breaks the connection", s.testRNRDeadline)
	s.test(t, "a message longer than its RECV fails both, and nothing lands", testTooLong)
	s.test(t, "a RECV outside of its region fails, and nothing lands", func(t *testing.T, a, b *end) {
		check(t, b.qp.PostRecv(fabric.Recv(1, b.piece(regionBytes-4, 8))))
		wantStatus(t, a.do(fabric.Send(a.piece(0, 8))), fabric.RemoteInvalid)
		wantStatus(t, next(t, b.recvCQ), fabric.LocalAccess)
	})
}

func testTooLong(t *testing.T, a, b *end) {
	a.fill(1)
	check(t, b.qp.PostRecv(fabric.Recv(1, b.piece(0, 10), b.piece(20, 10))))
	sent, received := a.do(fabric.Send(a.piece(0, 21))), next(t, b.recvCQ)
	if a.dev.Caps().Counts {
		wantStatus(t, sent, fabric.TooLong)
		wantStatus(t, received, fabric.TooLong)
	} else { // Hardware fails, but may not tell why, and fill the RECV first.
		if sent.Status == fabric.OK || received.Status == fabric.OK {
			t.Fatalf("got %v and %v", sent.Status, received.Status)
		}
		clear(b.mem.Bytes()[:10])
		clear(b.mem.Bytes()[20:30])
	}
	if len(bytes.Trim(b.mem.Bytes(), "\x00")) != 0 {
		t.Fatal("a part of the message landed")
	}
	eventually(t, "the receiver fails", func() bool { return b.qp.State() == fabric.Failed })
}

func testScatter(t *testing.T, a, b *end) {
	a.fill(5)
	check(t, b.qp.PostRecv(fabric.Recv(42, b.piece(10, 3), b.piece(100, 0), b.piece(1000, 5000), b.piece(9, 1))))
	a.ok(fabric.Send(a.piece(7, 2), a.piece(30, 2000)))
	c := next(t, b.recvCQ)
	if c.ID != 42 || c.Bytes != 2002 || c.Op != fabric.OpRecv || c.HasImm || c.QP != b.qp.Number() {
		t.Fatalf("got %+v", c)
	}
	want := append(bytes.Clone(a.mem.Bytes()[7:9]), a.mem.Bytes()[30:2030]...)
	got := append(bytes.Clone(b.mem.Bytes()[10:13]), b.mem.Bytes()[1000:2999]...)
	if !bytes.Equal(got, want) || b.mem.Bytes()[9] != 0 || b.mem.Bytes()[2999] != 0 {
		t.Fatal("the message was scattered wrongly")
	}
}

func testReceiverNotReady(t *testing.T, a, b *end) {
	a.mem.Bytes()[0] = 7
	check(t, a.qp.Post(fabric.Send(a.piece(0, 1)).Signal(1), fabric.Write(b.at(500), a.piece(0, 1)).Signal(2)))
	eventually(t, "the SEND waits", func() bool {
		m, err := b.dev.Metrics()
		check(t, err)
		return m.RNRWaits > 0 || !b.dev.Caps().Counts
	})
	if a.sendCQ.Count() != 0 || b.mem.Bytes()[500] != 0 {
		t.Fatal("something passed the SEND")
	}
	// The other direction is not held up.
	b.ok(fabric.Read(a.at(0), b.piece(600, 1)))
	check(t, b.qp.PostRecv(fabric.Recv(9, b.piece(0, 8))))
	for want := uint64(1); want <= 2; want++ {
		if c := next(t, a.sendCQ); c.ID != want || c.Status != fabric.OK {
			t.Fatalf("got %+v, want request %d", c, want)
		}
	}
	if b.mem.Bytes()[0] != 7 || b.mem.Bytes()[500] != 7 {
		t.Fatal("bytes are missing")
	}
}

func (s Suite) testRNRDeadline(t *testing.T) {
	devs := s.Open(t, "a", "b")
	a := newEnd(t, devs[0], fabric.QPConfig{RNRWait: time.Millisecond})
	b := newEnd(t, devs[1], fabric.QPConfig{})
	connect(t, a.qp, b.qp)
	check(t, a.qp.Post(fabric.Send(a.piece(0, 1)).Signal(1), fabric.Nop()))
	wantStatus(t, next(t, a.sendCQ), fabric.NotReady)
	wantStatus(t, next(t, a.sendCQ), fabric.Flushed)
	if a.qp.State() != fabric.Failed {
		t.Fatalf("state %v", a.qp.State())
	}
}
