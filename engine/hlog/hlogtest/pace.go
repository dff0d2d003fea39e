package hlogtest

import (
	"runtime"
	"slices"

	"github.com/ostrodb/ostro/engine/record"
)

// run copies what is sealed, now and then.
func (c *Copies) run() {
	for {
		select {
		case <-c.stop:
			return
		case <-c.kick:
		}
		for c.round() {
			runtime.Gosched()
		}
	}
}

// round copies some batches of one segment. It tells whether there is more.
func (c *Copies) round() bool {
	c.mu.Lock()
	waiting := c.waiting()
	if c.closed || c.held || c.broken != nil || len(waiting) == 0 {
		c.mu.Unlock()
		return false
	}
	s := c.segs[waiting[c.rng.IntN(len(waiting))]]
	for range 1 + c.rng.IntN(len(s.queue)) {
		c.copyNext(s)
	}
	tell := c.rng.IntN(3) > 0 || len(waiting) == 1 && len(s.queue) == 0
	advanced := c.src.Advanced
	c.mu.Unlock()
	if tell {
		advanced()
	}
	return true
}

// waiting lists the segments that are behind, by id: a seed is to mean something.
func (c *Copies) waiting() (ids []record.SegmentID) {
	for id, s := range c.segs {
		if len(s.queue) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// copyNext copies the first batch that waits. The caller holds mu.
func (c *Copies) copyNext(s *copied) {
	p := s.queue[0]
	s.queue = s.queue[1:]
	copy(s.bytes[p.from:p.to], s.memory[p.from:p.to])
	s.to, s.batch, s.whole = p.to, p.n, p.closed
	if c.done[p.n] || p.n <= c.Watermark() {
		c.judge.Errorf("batch %d is there twice", p.n)
	}
	c.done[p.n] = true
	w := c.Watermark()
	for c.done[w+1] {
		w++
		delete(c.done, w)
	}
	for _, s := range c.segs {
		if s.whole && s.batch <= w {
			s.memory = nil // From here on it may be gone.
		}
	}
	c.watermark.Store(uint64(w))
}

// Hold copies nothing from now on.
func (c *Copies) Hold() { c.set(func() { c.held = true }) }

// Flow goes on after Hold.
func (c *Copies) Flow() { c.set(func() { c.held = false }) }

// RefuseOpens lets the next n Opens fail, all if n is negative.
func (c *Copies) RefuseOpens(n int) { c.set(func() { c.noRoom = n }) }

// RefuseDrops lets the next n Drops fail, all if n is negative.
func (c *Copies) RefuseDrops(n int) { c.set(func() { c.noDrops = n }) }

func (c *Copies) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// CopySegment copies all that waits of one segment, also while held.
func (c *Copies) CopySegment(id record.SegmentID) {
	c.mu.Lock()
	for s := c.segs[id]; s != nil && len(s.queue) > 0; {
		c.copyNext(s)
	}
	c.mu.Unlock()
	c.src.Advanced()
}

// Break ends all copying, as when the node was deposed.
func (c *Copies) Break(err error) {
	c.set(func() { c.broken = err })
	if c.src.Failed != nil {
		c.src.Failed(err)
	}
}

// Behind lists the segments of which something waits to be copied.
func (c *Copies) Behind() []record.SegmentID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting()
}

// Dropped counts the segments that were dropped.
func (c *Copies) Dropped() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

// Has tells whether there is a copy of a segment, if only of nothing.
func (c *Copies) Has(id record.SegmentID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.segs[id] != nil
}
