package ring

import (
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
)

// Completions is a completion queue:
//
//	page 0   produced, consumed, armed, starved, a cache line each
//	page 1   completions; none in a queue that only counts
type Completions struct {
	produced, consumed *atomic.Uint64
	armed, starved     *atomic.Uint32
	slots              unsafe.Pointer
	depth              uint64
}

// CompletionsBytes is the size of a completion queue's memory.
func CompletionsBytes(depth uint64) int { return page + int(depth)*fabric.CompletionBytes }

// NewCompletions gives access to a completion queue's memory.
func NewCompletions(mem []byte, depth uint64) *Completions {
	_ = mem[CompletionsBytes(depth)-1]
	c := &Completions{
		produced: word64(mem, 0), consumed: word64(mem, line),
		armed: word32(mem, 2*line), starved: word32(mem, 3*line), depth: depth,
	}
	if depth > 0 {
		c.slots = unsafe.Pointer(&mem[page])
	}
	return c
}

// Depth is the number of slots; 0 if the queue only counts.
func (c *Completions) Depth() uint64 { return c.depth }

// Produced is how many completions were ever pushed.
func (c *Completions) Produced() uint64 { return c.produced.Load() }

// Consumed is how many completions the program says it has taken.
func (c *Completions) Consumed() uint64 { return c.consumed.Load() }

func (c *Completions) slot(index uint64) *[fabric.CompletionBytes]byte {
	return (*[fabric.CompletionBytes]byte)(unsafe.Add(c.slots, index&(c.depth-1)*fabric.CompletionBytes))
}

// Push is the NIC's: it writes completion number index, which has room, and
// wakes the program if it sleeps.
func (c *Completions) Push(index uint64, done *fabric.Completion) {
	if c.depth > 0 {
		done.Encode(c.slot(index))
	}
	c.produced.Store(index + 1)
	if c.armed.Load() != 0 {
		c.Wake()
	}
}

// Wake ends the sleep of whoever waits for a completion, and of who is about to.
func (c *Completions) Wake() {
	c.armed.Store(0)
	wake(c.armed)
}

// Take is the program's, one caller at a time: it decodes what has been pushed
// since the last call, up to len(into).
func (c *Completions) Take(into []fabric.Completion) int {
	if c.depth == 0 {
		return 0
	}
	from := c.consumed.Load()
	n := int(min(c.produced.Load()-from, uint64(len(into))))
	if n == 0 {
		return 0
	}
	for i := range n {
		into[i].Decode(c.slot(from + uint64(i)))
	}
	c.consumed.Store(from + uint64(n))
	return n
}

// Starve is the NIC's note that requests wait for room.
func (c *Completions) Starve() { c.starved.Store(1) }

// Relieve tells, once, that the NIC waits for room that there is now.
func (c *Completions) Relieve() bool { return c.starved.Load() != 0 && c.starved.Swap(0) != 0 }

// SleepAt waits, perhaps too short, while no more than seen completions were
// pushed.
func (c *Completions) SleepAt(seen uint64) {
	c.arm()
	if c.produced.Load() == seen {
		c.sleepArmed()
	}
}

// arm has the next completion wake the program.
func (c *Completions) arm() { c.armed.Store(1) }

// sleepArmed waits for a Wake since arm. It tells whether one came.
func (c *Completions) sleepArmed() bool { return sleep(c.armed, 1, maxSleep) }
