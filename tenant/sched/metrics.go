package sched

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// counts only grow, but for waiting.
type counts struct {
	queued, gone, ended        atomic.Int64
	stolen, replaced, long     atomic.Int64
	killed, throttled, refused atomic.Int64
	waiting                    atomic.Int64
	nanos                      atomic.Int64
	waits                      [waitBuckets]atomic.Int64
}

// waitBuckets is into how many sizes waiting times are sorted, each four times the one before it.
const waitBuckets = 12

// WaitBound is how long turns of a bucket of Metrics.Waits waited at most.
func WaitBound(bucket int) time.Duration { return time.Microsecond << (2 * bucket) }

// taken counts a turn that was taken from a queue after so long.
func (c *counts) taken(nanos int64) {
	c.gone.Add(1)
	nanos = max(nanos, 0)
	c.nanos.Add(nanos)
	c.waits[waitBucket(nanos)].Add(1)
}

func waitBucket(nanos int64) int {
	micros := uint64(nanos+999) / 1000
	return min((bits.Len64(max(micros, 1)-1)+1)/2, waitBuckets-1)
}

// Metrics are a scheduler's, now and since its start.
type Metrics struct {
	Queued  int64 // turns that wait for a worker
	Running int64 // that have one
	Waiting int64 // that wait for something else, in Wait
	Turns   int64 // in all, not ended

	// Since the start:
	Ended     int64
	Long      int64 // became long
	Stolen    int64 // taken by a worker that is not their home
	Replaced  int64 // lost their worker since they did not come back
	Killed    int64
	Throttled int64 // times that a tenant had to wait for its CPU share
	Refused   int64
	Taken     int64 // times that a turn was given a worker
	Waited    time.Duration
	// Waits counts Taken by how long they waited: up to 1 us, 4 us, 16 us and so on; the last, longer.
	Waits [waitBuckets]int64
}

// Metrics are those of now.
func (s *Scheduler) Metrics() Metrics {
	c := &s.counts
	m := Metrics{
		Waiting: c.waiting.Load(), Turns: s.total.Load(),
		Ended: c.ended.Load(), Long: c.long.Load(), Stolen: c.stolen.Load(), Replaced: c.replaced.Load(),
		Killed: c.killed.Load(), Throttled: c.throttled.Load(), Refused: c.refused.Load(),
		Taken: c.gone.Load(), Waited: time.Duration(c.nanos.Load()),
	}
	m.Queued = max(c.queued.Load()-m.Taken, 0)
	for _, c := range []*crew{s.short, s.long} {
		for _, w := range c.workers {
			if !w.free.Load() {
				m.Running++
			}
		}
	}
	for i := range m.Waits {
		m.Waits[i] = c.waits[i].Load()
	}
	return m
}

// Usage is what a tenant has used, and uses.
type Usage struct {
	CPU       time.Duration // that its functions ran
	Debt      time.Duration // of long turns that came to nothing, and are not paid for
	Turns     int64         // not ended
	Throttled int64
	Refused   int64
}

// Usage is that of now.
func (h *Share) Usage() Usage {
	return Usage{CPU: time.Duration(h.used.Load()), Debt: time.Duration(h.debt.Load()), Turns: h.turns.Load(), Throttled: h.throttled.Load(), Refused: h.refused.Load()}
}
