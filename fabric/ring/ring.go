// Package ring is the memory that a program and a NIC share: send and receive
// queues, completion queues, doorbells. It is the same memory in one process
// and between two.
//
// Every word has one writer. The NIC trusts none that the program writes: it
// keeps its own counters and takes the program's only after checking them.
//
//	word                 writer    says
//	send.tail, recv.tail program   requests posted, ever
//	send.head, recv.head NIC       slots free again, ever
//	state                NIC       fabric.State; sleepers wait on it
//	produced             NIC       completions pushed, ever
//	consumed             program   completions taken, ever
//	armed                both      set by the program that is about to sleep on it, cleared by who wakes it
//	starved              NIC       requests wait for room: kick after taking some
//	asleep               NIC       ringing a doorbell needs the event, too
//	doorbell bits        both      set by the program, taken by the NIC
//
// Words that different sides write lie on different cache lines.
package ring

import (
	"sync/atomic"
	"unsafe"
)

const (
	line = 64
	page = 4096
)

// word64 and word32 are aligned words of shared memory.
func word64(mem []byte, off int) *atomic.Uint64 {
	_ = mem[off+7]
	return (*atomic.Uint64)(unsafe.Pointer(&mem[off]))
}

func word32(mem []byte, off int) *atomic.Uint32 {
	_ = mem[off+3]
	return (*atomic.Uint32)(unsafe.Pointer(&mem[off]))
}

// Depth rounds a wished depth up to a power of two within limits.
func Depth(wish, otherwise int) uint64 {
	if wish <= 0 {
		wish = otherwise
	}
	d := uint64(1)
	for d < uint64(wish) && d < MaxDepth {
		d <<= 1
	}
	return d
}

// MaxDepth is the largest depth of a queue.
const MaxDepth = 1 << 16
