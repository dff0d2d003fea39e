package fabrictest

import (
	"bytes"
	"errors"
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

func staging(slot int) uint64 { return uint64(stagingAt + slot%slots*4096) }

// arm posts a slot's requests on replica i of n; next is where it passes on to.
func (h *hop) arm(slot, i, n int, next *end) {
	rest := message(i, n) - perHop
	loopSlot := fabric.SlotAddr(h.loop.Posted()+1, h.loop.SendDepth())
	downSlot := fabric.SlotAddr(h.down.Posted()+1, h.down.SendDepth())
	h.replenish(h.loop.Post,
		fabric.Wait(h.arrived.Number(), uint64(slot+1)),
		fabric.CAS(h.at(0), 0, 0, h.piece(0, 8)).Defer())
	forward := fabric.Send(h.piece(staging(slot), rest))
	if i == n-1 {
		forward = fabric.WriteImm(next.at(uint64(ackAt+slot%slots*n*results)), uint32(slot), h.piece(staging(slot), rest))
	}
	h.replenish(h.down.Post,
		fabric.Wait(h.done.Number(), uint64(slot+1)),
		fabric.Write(next.at(0), h.piece(0, 0)).Defer(),
		forward)
	h.replenish(h.qp.PostRecv, fabric.Recv(0,
		h.loopRing.Piece(loopSlot+fabric.PatchOffset, patch),
		h.downRing.Piece(downSlot+fabric.CopyOffset, copyPatch),
		h.piece(staging(slot), rest)))
}

// replenish posts when there is room: the client may hear of an operation's end
// before the replica's queue is free of it.
func (h *hop) replenish(post func(...fabric.WR) error, batch ...fabric.WR) {
	h.t.Helper()
	eventually(h.t, "room in a queue", func() bool {
		err := post(batch...)
		if !errors.Is(err, fabric.ErrFull) {
			check(h.t, err)
		}
		return err == nil
	})
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

// Chain is a client and its replicas, connected and armed.
type Chain struct {
	t      testing.TB
	client *end
	ack    fabric.QP
	hops   []*hop
	armed  int
	used   int
}

// NewChain makes a chain of the first device, the client, and the others.
func NewChain(t testing.TB, devs []fabric.Device) *Chain {
	c := &Chain{t: t, client: newEnd(t, devs[0], fabric.QPConfig{})}
	c.ack = c.client.newQP(fabric.QPConfig{})
	for _, d := range devs[1:] {
		c.hops = append(c.hops, newHop(t, d))
	}
	connect(t, c.client.qp, c.hops[0].qp)
	for i, h := range c.hops {
		if i+1 < len(c.hops) {
			connect(t, h.down, c.hops[i+1].qp)
		} else {
			connect(t, h.down, c.ack)
		}
	}
	for range slots {
		c.Arm()
	}
	return c
}

// Arm posts the requests of one more slot on every replica.
func (c *Chain) Arm() {
	for i, h := range c.hops {
		next := c.client
		if i+1 < len(c.hops) {
			next = c.hops[i+1].end
		}
		h.arm(c.armed, i, len(c.hops), next)
	}
	check(c.t, c.ack.PostRecv(fabric.Recv(uint64(c.armed))))
	c.armed++
}

// Write starts a gWRITE.
func (c *Chain) Write(off uint64, n uint32) {
	check(c.t, c.client.qp.Post(fabric.Write(c.hops[0].at(off), c.client.piece(off, n))))
	c.send(fabric.WR{}, 0, off, n)
}

// CAS starts a gCAS on the replicas of the map.
func (c *Chain) CAS(off, old, swap uint64, executes uint) {
	c.send(fabric.CAS(fabric.Target{Addr: off}, old, swap), executes, 0, 0)
}

func (c *Chain) send(own fabric.WR, executes uint, off uint64, n uint32) {
	m := describe(c.hops, c.used, own, executes, off, n)
	at := staging(c.used)
	copy(c.client.mem.Bytes()[at:], m)
	check(c.t, c.client.qp.Post(fabric.Send(c.client.piece(at, uint32(len(m))))))
	c.used++
}

// Acknowledged waits for the next acknowledgement and gives its slot.
func (c *Chain) Acknowledged() int {
	got := next(c.t, c.client.recvCQ)
	if got.Status != fabric.OK {
		c.t.Fatalf("an acknowledgement ended with %v", got.Status)
	}
	return int(got.Imm)
}

func (s Suite) testChain(t *testing.T, n int) {
	devs := s.Open(t, []string{"client", "r1", "r2", "r3", "r4"}[:n+1]...)
	if c := devs[0].Caps(); !c.Wait || !c.Rings {
		t.Skip("this provider runs no chains")
	}
	c := NewChain(t, devs)
	c.client.fill(0x33)
	for round := range 3 { // Slots are armed again: rings and messages go round.
		c.runAll(t, uint64(round*slots/2))
		for range slots {
			c.Arm()
		}
	}
}

// runAll has all slots in flight at once: even ones gWRITE, odd ones gCAS, which
// move a lock word on from a value, on even replicas only.
func (c *Chain) runAll(t *testing.T, from uint64) {
	const lock, size = 400_000, 1000
	first := c.used
	for i := range slots {
		if i%2 == 0 {
			c.Write(uint64(i*size), size)
		} else {
			c.CAS(lock, from+uint64(i/2), from+uint64(i/2)+1, 0b0101)
		}
	}
	for i := range slots {
		if got := c.Acknowledged(); got != first+i {
			t.Fatalf("acknowledgement %d is of slot %d", first+i, got)
		}
		c.wantResults(t, i, from)
	}
	for i, h := range c.hops {
		for slot := 0; slot < slots; slot += 2 {
			off := slot * size
			if !bytes.Equal(h.mem.Bytes()[off:off+size], c.client.mem.Bytes()[off:off+size]) {
				t.Fatalf("replica %d lacks the bytes of slot %d", i, slot)
			}
		}
		want := uint64(0)
		if i%2 == 0 {
			want = from + slots/2
		}
		if got := h.word(lock).Load(); got != want {
			t.Fatalf("replica %d has a lock word of %d, want %d", i, got, want)
		}
	}
}

// wantResults checks what the CASes of a slot found.
func (c *Chain) wantResults(t *testing.T, slot int, from uint64) {
	t.Helper()
	n := len(c.hops)
	for i := range n {
		want := uint64(0)
		if slot%2 == 1 && i%2 == 0 {
			want = from + uint64(slot/2)
		}
		if got := c.client.word(ackAt + (slot*n+i)*results).Load(); got != want {
			t.Fatalf("slot %d: replica %d reports %d, want %d", slot, i, got, want)
		}
	}
}
