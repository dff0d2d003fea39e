package fabrictest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// chain is HyperLoop's: replicas in a row whose NICs execute and pass on what the
// client describes, while no replica's program does anything.
func (s Suite) chain(t *testing.T) {
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprintf("gWRITE and gCAS down a chain of %d", n), func(t *testing.T) { s.testChain(t, n) })
	}
}

const (
	slots     = 32
	patch     = fabric.SlotBytes - fabric.PatchOffset
	copyPatch = fabric.SlotBytes - fabric.CopyOffset
	perHop    = patch + copyPatch // what a replica's own requests are filled in with
	results   = 8                 // of a CAS, per replica, behind the patches

	stagingAt = 512 << 10 // messages pass through here, slot by slot
	ackAt     = 768 << 10
)

// hop is a replica: messages arrive on up, the loop executes, down passes on.
type hop struct {
	*end
	down, loop         fabric.QP
	arrived, done      fabric.CQ
	loopRing, downRing fabric.Region
}

func newHop(t testing.TB, d fabric.Device) *hop {
	h := &hop{end: newEnd(t, d, fabric.QPConfig{})}
	h.arrived, h.done = must(h.dom.NewCQ(0))(t), must(h.dom.NewCQ(0))(t)
	h.qp = must(h.dom.NewQP(fabric.QPConfig{SendCQ: h.sendCQ, RecvCQ: h.arrived}))(t)
	h.loop = must(h.dom.NewQP(fabric.QPConfig{SendCQ: h.done, RecvCQ: h.done}))(t)
	h.down = must(h.dom.NewQP(fabric.QPConfig{SendCQ: h.sendCQ, RecvCQ: h.recvCQ, SendDepth: 4 * slots}))(t)
	h.loopRing = must(h.dom.RegisterRing(h.loop, fabric.LocalWrite))(t)
	h.downRing = must(h.dom.RegisterRing(h.down, fabric.LocalWrite))(t)
	connect(t, h.loop, h.loop)
	return h
}

// message is how long what replica i of n receives is: patches for it and all
// behind it, then the results so far.
func message(i, n int) uint32 { return uint32((n-i)*perHop + n*results) }

func staging(slot int) uint64 { return uint64(stagingAt + slot*4096) }

// arm posts a slot's requests on replica i of n; next is where it passes on to.
func (h *hop) arm(slot, i, n int, next *end) {
	rest := message(i, n) - perHop
	loopSlot := fabric.SlotAddr(h.loop.Posted()+1, h.loop.SendDepth())
	downSlot := fabric.SlotAddr(h.down.Posted()+1, h.down.SendDepth())
	check(h.t, h.loop.Post(
		fabric.Wait(h.arrived.Number(), uint64(slot+1)),
		fabric.CAS(h.at(0), 0, 0, h.piece(0, 8)).Defer()))
	forward := fabric.Send(h.piece(staging(slot), rest))
	if i == n-1 {
		forward = fabric.WriteImm(next.at(uint64(ackAt+slot*n*results)), uint32(slot), h.piece(staging(slot), rest))
	}
	check(h.t, h.down.Post(
		fabric.Wait(h.done.Number(), uint64(slot+1)),
		fabric.Write(next.at(0), h.piece(0, 0)).Defer(),
		forward))
	check(h.t, h.qp.PostRecv(fabric.Recv(0,
		h.loopRing.Piece(loopSlot+fabric.PatchOffset, patch),
		h.downRing.Piece(downSlot+fabric.CopyOffset, copyPatch),
		h.piece(staging(slot), rest))))
}

// describe builds the message that makes every replica do execute and pass
// n bytes at off on. Replicas whose bit in the map is clear do nothing themselves.
func describe(hops []*hop, slot int, cas fabric.WR, executes uint, off uint64, bytes uint32) []byte {
	var m []byte
	n := len(hops)
	for i, h := range hops {
		own := fabric.Nop()
		if executes>>i&1 == 1 {
			own = cas
			own.Pieces, own.Local[0] = 1, h.piece(staging(slot)+uint64((n-i-1)*perHop+i*results), results)
		}
		own.Flags |= fabric.Signaled
		p := own.Patch()
		m = append(m, p[:]...)
		write := fabric.Nop()
		if bytes > 0 && i < n-1 {
			write = fabric.Write(fabric.Target{Addr: off}, h.piece(off, bytes))
		}
		p = write.Patch()
		m = append(m, p[patch-copyPatch:]...)
	}
	return append(m, make([]byte, n*results)...)
}

func (s Suite) testChain(t *testing.T, n int) {
	names := []string{"client", "r1", "r2", "r3", "r4"}[:n+1]
	devs := s.Open(t, names...)
	if c := devs[0].Caps(); !c.Wait || !c.Rings {
		t.Skip("this provider runs no chains")
	}
	client := newEnd(t, devs[0], fabric.QPConfig{})
	ack := client.newQP(fabric.QPConfig{})
	hops := make([]*hop, n)
	for i := range hops {
		hops[i] = newHop(t, devs[i+1])
	}
	connect(t, client.qp, hops[0].qp)
	for i, h := range hops {
		if i+1 < n {
			connect(t, h.down, hops[i+1].qp)
		} else {
			connect(t, h.down, ack)
		}
	}
	for slot := range slots {
		for i, h := range hops {
			next := client
			if i+1 < n {
				next = hops[i+1].end
			}
			h.arm(slot, i, n, next)
		}
		check(t, ack.PostRecv(fabric.Recv(uint64(slot))))
	}
	runChain(t, client, hops)
}

// runChain has all slots in flight at once: even ones gWRITE, odd ones gCAS.
func runChain(t *testing.T, client *end, hops []*hop) {
	n := len(hops)
	client.fill(0x33)
	const lock, size = 400_000, 1000
	for slot := range slots {
		off := uint64(slot * size)
		var m []byte
		if slot%2 == 0 {
			m = describe(hops, slot, fabric.WR{}, 0, off, size)
			check(t, client.qp.Post(fabric.Write(hops[0].at(off), client.piece(off, size))))
		} else {
			// Each CAS moves the lock word on by one, on even replicas only.
			old := uint64(slot / 2)
			m = describe(hops, slot, fabric.CAS(fabric.Target{Addr: lock}, old, old+1), 0b0101, 0, 0)
		}
		at := staging(slot)
		copy(client.mem.Bytes()[at:], m)
		check(t, client.qp.Post(fabric.Send(client.piece(at, uint32(len(m))))))
	}
	for slot := range slots {
		if c := next(t, client.recvCQ); c.Status != fabric.OK || c.Imm != uint32(slot) {
			t.Fatalf("acknowledgement %d: %+v", slot, c)
		}
		wantResults(t, client, slot, n)
	}
	for i, h := range hops {
		for slot := 0; slot < slots; slot += 2 {
			off := slot * size
			if !bytes.Equal(h.mem.Bytes()[off:off+size], client.mem.Bytes()[off:off+size]) {
				t.Fatalf("replica %d lacks the bytes of slot %d", i, slot)
			}
		}
		if want, got := uint64(slots/2*(1-i%2)), h.word(lock).Load(); got != want {
			t.Fatalf("replica %d has a lock word of %d, want %d", i, got, want)
		}
	}
}

// wantResults checks what the CASes of a slot found.
func wantResults(t *testing.T, client *end, slot, n int) {
	t.Helper()
	for i := range n {
		want := uint64(0)
		if slot%2 == 1 && i%2 == 0 {
			want = uint64(slot / 2)
		}
		if got := client.word(ackAt + (slot*n+i)*results).Load(); got != want {
			t.Fatalf("slot %d: replica %d reports %d, want %d", slot, i, got, want)
		}
	}
}
