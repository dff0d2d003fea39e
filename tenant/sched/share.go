package sched

import (
	"math"
	"sync/atomic"
	"time"
)

// Limits are what a tenant may use of the scheduler.
type Limits struct {
	Cores float64 // cores' worth of time, a second each second; 0: as much as there is
}

// Share is a tenant's part of the scheduler: its queue, and what it has used.
type Share struct {
	s    *Scheduler
	name string
	home int

	cores atomic.Uint64 // bits of a float64
	full  atomic.Int64  // when the bucket of its time will be full again
	used  atomic.Int64  // nanoseconds

	turns     atomic.Int64 // that have not ended
	begun     atomic.Int64 // and have begun, as short ones
	long      atomic.Int64 // and are long ones
	quiet     atomic.Int64 // of these, those that have a thread of low priority
	patience  atomic.Int64 // nanoseconds that a turn runs as a short one
	debt      atomic.Int64 // nanoseconds of long turns that came to nothing
	rests     atomic.Int64 // in debt: until when it gets no ticket, for what it ran beyond its last ones
	held      atomic.Bool  // a lane may have been set aside for room since lanes were last released
	throttled atomic.Int64
	refused   atomic.Int64

	shorts, longs []lane
}

// burst is for how long a tenant that was idle may use more than its cores.
const burst = int64(100 * time.Millisecond)

// NewShare adds a tenant. Its home is where the fewest tenants are.
func (s *Scheduler) NewShare(name string, limits Limits) *Share {
	share := &Share{s: s, name: name, shorts: make([]lane, len(s.short.workers)), longs: make([]lane, len(s.long.workers))}
	for i, w := range s.short.workers {
		share.shorts[i] = lane{share: share, at: w}
	}
	for i, w := range s.long.workers {
		share.longs[i] = lane{share: share, at: w}
	}
	share.patience.Store(int64(s.opts.LongAfter))
	share.SetLimit(limits.Cores)
	s.mu.Lock()
	defer s.mu.Unlock()
	share.home = s.quietest()
	s.homes[share.home]++
	s.shares[share] = struct{}{}
	return share
}

// quietest is the worker at which the fewest tenants are at home.
func (s *Scheduler) quietest() int {
	least := 0
	for i, n := range s.homes {
		if n < s.homes[least] {
			least = i
		}
	}
	return least
}

// Close forgets a tenant. Turns that it has go on to their end.
func (h *Share) Close() {
	h.SetLimit(0)
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if _, has := h.s.shares[h]; has {
		delete(h.s.shares, h)
		h.s.homes[h.home]--
	}
}

// Name is the tenant's.
func (h *Share) Name() string { return h.name }

// SetLimit says how many cores' worth of time the tenant may use; 0: as much as there is.
func (h *Share) SetLimit(cores float64) {
	if math.Float64frombits(h.cores.Swap(math.Float64bits(cores))) == cores {
		return
	}
	h.full.Store(0)
	h.release()
}

// Inline tells whether the tenant may run a function on a front door's loop now: it has used no more than its part.
func (h *Share) Inline() bool {
	return h.cores.Load() == 0 || h.pause(h.s.now()) == 0
}

// Charge counts time that the tenant's functions ran elsewhere.
func (h *Share) Charge(nanos int64) { h.charge(0, nanos) }

func (h *Share) charge(now, nanos int64) {
	h.used.Add(nanos)
	cores := math.Float64frombits(h.cores.Load())
	if cores == 0 {
		return
	}
	if now == 0 {
		now = h.s.now()
	}
	for {
		was := h.full.Load()
		if h.full.CompareAndSwap(was, max(was, now)+int64(float64(nanos)/cores)) {
			return
		}
	}
}

// pause is for how long the tenant has to wait for more time; 0: it need not.
func (h *Share) pause(now int64) int64 {
	if h.cores.Load() == 0 || h.s.closed.Load() {
		return 0
	}
	return max(h.full.Load()-now-burst, 0)
}

// begin notes that a turn begins, unless too many have. It never counts one too many, not even for a moment: two lanes that
// see each other's would both wait, and nobody might be left to release them.
func (h *Share) begin() bool {
	return h.s.take(&h.begun, h.s.opts.Begun)
}

// unbegin takes a begin back, and lets turns begin that were held back.
func (h *Share) unbegin() {
	h.begun.Add(-1)
	h.unhold()
}

// unhold has lanes looked at again that were set aside for room.
func (h *Share) unhold() {
	if h.held.Load() && h.held.Swap(false) {
		h.release()
	}
}

// release lets all its turns be looked at again.
func (h *Share) release() {
	for i := range h.shorts {
		h.shorts[i].release()
	}
	for i := range h.longs {
		h.longs[i].release()
	}
}

func (h *Share) lane(w *worker) *lane {
	if w.crew == h.s.short {
		return &h.shorts[w.number]
	}
	return &h.longs[w.number]
}
