package tenant

import "sync/atomic"

const (
	second = int64(1e9)
	// burst is for how long a tenant that was idle may go faster than its limit.
	burst = second / 10
	// chunkShare is which share of a second's operations is taken at once, so that a
	// tenant's connections on several cores do not meet at each operation.
	chunkShare = 1000
	maxChunk   = 64
)

// pace gives out operations at a rate. Of the two halves of a bucket's state, how much is in it
// and since when, one is enough: the time at which it will be full again.
type pace struct {
	full atomic.Int64 // nanoseconds
}

// owe takes n operations whether they are there or not.
func (p *pace) owe(now, n, rate int64) {
	for {
		was := p.full.Load()
		if p.full.CompareAndSwap(was, max(was, now)+n*second/rate) {
			return
		}
	}
}

// credit is how many operations can be owed so that all is paid within a second.
func (p *pace) credit(now, rate int64) int64 {
	nanos := second - max(p.full.Load()-now, 0)
	return max(nanos, 0) * rate / second
}

// take asks for operations at a rate of so many a second, and returns how many are granted: a
// chunk, or none.
func (p *pace) take(now, rate int64) int64 {
	chunk := min(max(rate/chunkShare, 1), maxChunk)
	for {
		was := p.full.Load()
		next := max(was, now) + chunk*second/rate
		if next-now > max(burst, 2*second/rate) {
			return 0
		}
		if p.full.CompareAndSwap(was, next) {
			return chunk
		}
	}
}
