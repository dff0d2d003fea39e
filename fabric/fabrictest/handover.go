package fabrictest

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

func (s Suite) handOver(t *testing.T) {
	s.testWithRings(t, "an un-owned request holds the queue until it is handed over", func(t *testing.T, a, b *end) {
		a.mem.Bytes()[0] = 5
		index := a.qp.Posted()
		check(t, a.qp.Post(fabric.Write(b.at(0), a.piece(0, 1)).Signal(1).Defer(), fabric.Nop().Signal(2)))
		other := a.newQP(fabric.QPConfig{})
		connect(t, other, other)
		check(t, other.Post(fabric.Nop().Signal(3)))
		if c := next(t, a.sendCQ); c.ID != 3 || b.mem.Bytes()[0] != 0 {
			t.Fatalf("got %+v before the hand-over", c)
		}
		check(t, a.qp.HandOver(index))
		for want := uint64(1); want <= 2; want++ {
			if c := next(t, a.sendCQ); c.ID != want || c.Status != fabric.OK || b.mem.Bytes()[0] != 5 {
				t.Fatalf("got %+v, want request %d", c, want)
			}
		}
		if a.qp.HandOver(index) == nil || a.qp.HandOver(1<<40) == nil {
			t.Fatal("requests that are not in the queue were handed over")
		}
	})
	s.testWithRings(t, "a remote WRITE fills in a request and hands it over", func(t *testing.T, a, b *end) {
		back, home := b.newQP(fabric.QPConfig{}), a.newQP(fabric.QPConfig{})
		connect(t, back, home)
		ring := must(b.dom.RegisterRing(back, fabric.RemoteWrite))(t)
		b.fill(1)
		index := back.Posted()
		check(t, back.Post(fabric.Write(a.at(0), b.piece(0, 0)).Defer()))

		filled := fabric.Write(a.at(700), b.piece(300, 50)).Signal(0)
		a.sendPatch(ring, filled, back, index)
		wantStatus(t, next(t, b.sendCQ), fabric.OK)
		if got, want := a.mem.Bytes()[700:750], b.mem.Bytes()[300:350]; string(got) != string(want) {
			t.Fatal("the request did not do what it was filled in with")
		}
	})
	s.testWithRings(t, "a filled-in request can become a NOP", func(t *testing.T, a, b *end) {
		loop := b.newQP(fabric.QPConfig{})
		connect(t, loop, loop)
		ring := must(b.dom.RegisterRing(loop, fabric.RemoteWrite))(t)
		check(t, loop.Post(fabric.CAS(b.at(0), 0, 1, b.piece(8, 8)).Defer(), fabric.CAS(b.at(0), 0, 1, b.piece(8, 8)).Defer()))
		for i, w := range []fabric.WR{fabric.Nop(), fabric.CAS(b.at(64), 0, 77, b.piece(8, 8))} {
			a.sendPatch(ring, w.Signal(0), loop, uint64(i))
			if c := next(t, b.sendCQ); c.Status != fabric.OK || c.Op != w.Op {
				t.Fatalf("got %+v, want %v", c, w.Op)
			}
		}
		if b.word(0).Load() != 0 || b.word(64).Load() != 77 {
			t.Fatalf("the words are %d and %d", b.word(0).Load(), b.word(64).Load())
		}
	})
	s.testWithRings(t, "a filled-in request keeps the keys of its poster", func(t *testing.T, a, b *end) {
		secret := newMemory(t, 4096)
		hidden := must(b.dom.Register(secret, fabric.Everything))(t)
		back, home := b.newQP(fabric.QPConfig{}), a.newQP(fabric.QPConfig{})
		connect(t, back, home)
		ring := must(b.dom.RegisterRing(back, fabric.RemoteWrite))(t)
		small := newMemory(t, 4096)
		reg := must(b.dom.Register(small, fabric.LocalWrite))(t)
		check(t, back.Post(fabric.Write(a.at(0), reg.Piece(0, 0)).Defer()))
		w := fabric.Write(a.at(0), hidden.Piece(4096, 8)).Signal(0) // Past the poster's own region.
		a.sendPatch(ring, w, back, 0)
		wantStatus(t, next(t, b.sendCQ), fabric.LocalAccess)
	})
	s.testWithRings(t, "a ring cannot be written without the right, nor past its slots", func(t *testing.T, a, b *end) {
		ring := must(b.dom.RegisterRing(b.qp, fabric.RemoteWrite))(t)
		if got, want := ring.Info().Bytes, b.qp.SendDepth()*fabric.SlotBytes; got != want {
			t.Fatalf("%d bytes are registered, the slots have %d", got, want)
		}
		wantStatus(t, a.do(fabric.Write(ring.Info().At(ring.Info().Bytes-4), a.piece(0, 8))), fabric.RemoteAccess)
	})
}

// sendPatch writes a patch into a slot of a peer's registered ring.
func (e *end) sendPatch(ring fabric.Region, w fabric.WR, q fabric.QP, index uint64) {
	e.t.Helper()
	patch := w.Patch()
	const scratch = 900_000
	copy(e.mem.Bytes()[scratch:], patch[:])
	at := ring.Info().At(fabric.SlotAddr(index, q.SendDepth()) + fabric.PatchOffset)
	e.ok(fabric.Write(at, e.piece(scratch, uint32(len(patch)))))
}

func (s Suite) testWithRings(t *testing.T, name string, f func(t *testing.T, a, b *end)) {
	s.test(t, name, func(t *testing.T, a, b *end) {
		if !a.dev.Caps().Rings {
			t.Skip("this provider has no registered rings")
		}
		f(t, a, b)
	})
}
