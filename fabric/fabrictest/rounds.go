package fabrictest

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// rounds are queues that repeat.
func (s Suite) rounds(t *testing.T) {
	const times = 300
	s.testWithRings(t, "a queue that repeats goes on for ever, and its WAITs count on", func(t *testing.T, a, b *end) {
		counter := must(a.dom.NewCQ(0))(t)
		bell, q, peer := must(a.dom.NewQP(fabric.QPConfig{SendCQ: counter, RecvCQ: counter}))(t), a.newQP(fabric.QPConfig{Repeat: true}), b.newQP(fabric.QPConfig{})
		connect(t, bell, bell)
		check(t, q.Post(
			fabric.WaitEach(counter.Number(), 1, 2), fabric.Add(b.at(0), 1, a.piece(0, 8)),
			fabric.WaitEach(counter.Number(), 2, 2), fabric.Add(b.at(8), 1, a.piece(8, 8)).Signal(9)))
		connect(t, q, peer)
		for i := range uint64(times) {
			check(t, bell.Post(fabric.Nop().Signal(0)))
			if i%2 == 1 {
				wantStatus(t, next(t, a.sendCQ), fabric.OK)
				if one, two := b.word(0).Load(), b.word(8).Load(); one != i/2+1 || two != i/2+1 {
					t.Fatalf("after %d steps the words are %d and %d", i+1, one, two)
				}
			}
			eventually(t, "room for another step", func() bool { return bell.Done() == bell.Posted() })
		}
	})
	s.testWithRings(t, "a request posted un-owned is the host's again each round", func(t *testing.T, a, b *end) {
		back, home := b.newQP(fabric.QPConfig{Repeat: true}), a.newQP(fabric.QPConfig{})
		ring := must(b.dom.RegisterRing(back, fabric.RemoteWrite))(t)
		check(t, back.Post(fabric.Add(a.at(0), 0, b.piece(0, 8)).Defer(), fabric.Add(a.at(8), 0, b.piece(0, 8)).Defer()))
		connect(t, back, home)
		for i := range uint64(times) {
			a.sendPatch(ring, fabric.Add(a.at(i%2*8), i+1, b.piece(0, 8)).Signal(0), back, i%2)
			wantStatus(t, next(t, b.sendCQ), fabric.OK)
		}
		var want [2]uint64
		for i := range uint64(times) {
			want[i%2] += i + 1
		}
		if got := [2]uint64{a.word(0).Load(), a.word(8).Load()}; got != want {
			t.Fatalf("the words are %d, want %d", got, want)
		}
	})
	s.testWithRings(t, "RECVs of a queue that repeats take turns", func(t *testing.T, a, b *end) {
		to, from := b.newQP(fabric.QPConfig{Repeat: true}), a.newQP(fabric.QPConfig{})
		check(t, to.PostRecv(fabric.Recv(0, b.piece(0, 1)), fabric.Recv(1, b.piece(1, 1)), fabric.Recv(2, b.piece(2, 1))))
		connect(t, from, to)
		for i := range uint64(times) {
			a.mem.Bytes()[0] = byte(i)
			check(t, from.Post(fabric.Send(a.piece(0, 1)).Signal(0)))
			wantStatus(t, next(t, a.sendCQ), fabric.OK)
			if c := next(t, b.recvCQ); c.Status != fabric.OK || c.ID != i%3 || b.mem.Bytes()[i%3] != byte(i) {
				t.Fatalf("message %d came as %+v", i, c)
			}
		}
	})
	s.testWithRings(t, "a queue that repeats takes nothing once it is connected", func(t *testing.T, a, b *end) {
		q, peer := a.newQP(fabric.QPConfig{Repeat: true}), b.newQP(fabric.QPConfig{})
		check(t, q.Post(fabric.Nop().Defer()))
		check(t, q.PostRecv(fabric.Recv(0)))
		connect(t, q, peer)
		if q.Post(fabric.Nop()) == nil || q.PostRecv(fabric.Recv(0)) == nil {
			t.Fatal("took another request")
		}
	})
	s.testWithRings(t, "requests of a queue that repeats are flushed once", func(t *testing.T, a, b *end) {
		q, peer := a.newQP(fabric.QPConfig{Repeat: true}), b.newQP(fabric.QPConfig{})
		check(t, q.Post(fabric.Nop().Signal(0), fabric.Nop().Signal(1).Defer(), fabric.Nop().Signal(2).Defer()))
		check(t, q.PostRecv(fabric.Recv(3), fabric.Recv(4)))
		connect(t, q, peer)
		wantStatus(t, next(t, a.sendCQ), fabric.OK)
		check(t, peer.Close())
		for want := uint64(1); want <= 2; want++ {
			if c := next(t, a.sendCQ); c.ID != want || c.Status != fabric.Flushed {
				t.Fatalf("got %+v, want request %d flushed", c, want)
			}
		}
		for want := uint64(3); want <= 4; want++ {
			if c := next(t, a.recvCQ); c.ID != want || c.Status != fabric.Flushed {
				t.Fatalf("got %+v, want RECV %d flushed", c, want)
			}
		}
		a.ok(fabric.Nop()) // Another queue pair's, on the same completion queue: nothing of q lies before it.
		if n := a.recvCQ.Poll(make([]fabric.Completion, 1)); n != 0 {
			t.Fatalf("%d RECVs too many", n)
		}
	})
}
