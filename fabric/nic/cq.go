package nic

import (
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

// cq is a completion queue. It never overflows: a request starts only when there
// is room for its completion, and reserves it.
type cq struct {
	number   uint32
	dom      *domain
	shared   *ring.Completions
	mem      *fabric.Memory
	produced uint64 // the truth; the shared word follows it
	reserved uint64
	users    int   // queue pairs
	waiters  []*qp // stalled at a WAIT
}

// reserve takes room for one completion, or asks the program to make some.
func (c *cq) reserve() bool {
	depth := c.shared.Depth()
	if depth == 0 {
		return true
	}
	if !c.room(depth) {
		c.shared.Starve()
		if !c.room(depth) { // The program may have taken some before it could see the note.
			return false
		}
	}
	c.reserved++
	return true
}

// room computes with the program's counter, which may be any number: one beyond
// the truth makes the queue look full, to its own owner's harm only.
func (c *cq) room(depth uint64) bool {
	held := c.produced - c.shared.Consumed()
	return held <= depth && held+c.reserved < depth
}

func (c *cq) release() {
	if c.shared.Depth() > 0 {
		c.reserved--
	}
}

// push adds a completion for which there is reserved room, and continues the
// queues whose WAIT it fulfils. A queue that only counts does not count failures: what
// waits for a message must not start when the connection ends in its middle.
func (c *cq) push(e *Engine, done *fabric.Completion) {
	c.release()
	if c.shared.Depth() == 0 && done.Status != fabric.OK {
		return
	}
	c.shared.Push(c.produced, done)
	c.produced++
	if len(c.waiters) > 0 {
		c.continueWaiters(e)
	}
}

func (c *cq) continueWaiters(e *Engine) {
	kept := c.waiters[:0]
	for _, q := range c.waiters {
		if q.waitsAt != c {
			continue
		}
		if q.cur.A > c.produced {
			kept = append(kept, q)
			continue
		}
		q.waitsAt = nil
		e.enqueue(q)
	}
	clear(c.waiters[len(kept):])
	c.waiters = kept
}

// await stalls q at its WAIT for c.
func (c *cq) await(q *qp) {
	if q.waitsAt == nil {
		q.waitsAt = c
		c.waiters = append(c.waiters, q)
	}
}

// forget drops a queue pair that waits no more.
func (c *cq) forget(q *qp) {
	q.waitsAt = nil
	for i, w := range c.waiters {
		if w == q {
			c.waiters = append(c.waiters[:i], c.waiters[i+1:]...)
			return
		}
	}
}
