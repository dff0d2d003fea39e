package ring

import (
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
)

// Queue is a ring of work requests. The program owns slots from tail to head
// plus depth, the NIC those from head to tail, except that a slot whose owner
// byte is the host's may be filled in by whoever its poster let do so.
type Queue struct {
	tail, head *atomic.Uint64
	slots      unsafe.Pointer
	depth      uint64
}

// Tail is how many requests were ever posted.
func (q *Queue) Tail() uint64 { return q.tail.Load() }

// Head is how many slots were ever freed.
func (q *Queue) Head() uint64 { return q.head.Load() }

// Depth is the number of slots.
func (q *Queue) Depth() uint64 { return q.depth }

// Publish makes all requests up to tail visible to the NIC.
func (q *Queue) Publish(tail uint64) { q.tail.Store(tail) }

// Free gives all slots up to head back to the program.
func (q *Queue) Free(head uint64) { q.head.Store(head) }

func (q *Queue) slot(index uint64) *[fabric.SlotBytes]byte {
	return (*[fabric.SlotBytes]byte)(unsafe.Add(q.slots, index&(q.depth-1)*fabric.SlotBytes))
}

// ctrl is the word that ends in the owner byte.
func (q *Queue) ctrl(index uint64) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(q.slots, index&(q.depth-1)*fabric.SlotBytes+fabric.SlotBytes-4))
}

// Put encodes a request into its slot. It becomes the NIC's by Publish, unless
// it is un-owned.
func (q *Queue) Put(index uint64, w *fabric.WR) {
	q.ctrl(index).Store(0) // Un-owned while it is half written.
	w.Encode(q.slot(index))
	if !w.Unowned {
		q.HandOver(index)
	}
}

// HandOver makes a request the NIC's.
func (q *Queue) HandOver(index uint64) { q.ctrl(index).Or(fabric.OwnedByNIC << 24) }

// TakeBack makes a request the host's again.
func (q *Queue) TakeBack(index uint64) { q.ctrl(index).And(1<<24 - 1) }

// Owned tells whether the request is the NIC's.
func (q *Queue) Owned(index uint64) bool { return q.ctrl(index).Load()>>24 == fabric.OwnedByNIC }

// Get decodes a private copy of a request: the slot's bytes may change at any time.
func (q *Queue) Get(index uint64, w *fabric.WR) {
	private := *q.slot(index)
	w.Decode(&private)
}

// Pair is the shared memory of a queue pair:
//
//	page 0   send.tail, send.head, recv.tail, recv.head, state, a cache line each
//	page 1   send slots, then receive slots
type Pair struct {
	Send, Recv Queue
	state      *atomic.Uint32
}

// SendSlotsOffset is where in a pair's memory the send slots begin.
const SendSlotsOffset = page

// PairBytes is the size of a pair's memory.
func PairBytes(sendDepth, recvDepth uint64) int {
	return page + int(sendDepth+recvDepth)*fabric.SlotBytes
}

// NewPair gives access to a pair's memory.
func NewPair(mem []byte, sendDepth, recvDepth uint64) *Pair {
	_ = mem[PairBytes(sendDepth, recvDepth)-1]
	return &Pair{
		Send:  Queue{word64(mem, 0), word64(mem, line), unsafe.Pointer(&mem[page]), sendDepth},
		Recv:  Queue{word64(mem, 2*line), word64(mem, 3*line), unsafe.Pointer(&mem[page+int(sendDepth)*fabric.SlotBytes]), recvDepth},
		state: word32(mem, 4*line),
	}
}

// State is the queue pair's.
func (p *Pair) State() fabric.State { return fabric.State(p.state.Load()) }

// SetState tells the state and wakes who waits for it.
func (p *Pair) SetState(s fabric.State) {
	p.state.Store(uint32(s))
	wake(p.state)
}

// SleepUntilStateLeaves waits, perhaps too short, until the state is no longer s.
func (p *Pair) SleepUntilStateLeaves(s fabric.State) { sleep(p.state, uint32(s), maxSleep) }
