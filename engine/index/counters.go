package index

import (
	"sync/atomic"
	"unsafe"
)

// counters count entries without one line that all workers write. The stripe
// is taken from where the caller's probe lies: workers have stacks and sessions
// of their own. Stripes may be negative; only their sum means something.
type counters struct {
	stripes [64]struct {
		n atomic.Int64
		_ [56]byte
	}
	splits   atomic.Int64
	rebuilds atomic.Int64
}

func (c *counters) add(pr *Probe, n int64) {
	at := uint64(uintptr(unsafe.Pointer(pr))) >> 11
	c.stripes[at*0x9e3779b97f4a7c15>>58].n.Add(n)
}

func (c *counters) entries() int64 {
	var sum int64
	for i := range c.stripes {
		sum += c.stripes[i].n.Load()
	}
	return max(sum, 0)
}

// Metrics of an index.
type Metrics struct {
	Entries  int64 // as Len
	Bytes    int64 // as Bytes
	Splits   int64 // sub-tables that became two
	Rebuilds int64 // sub-tables that were made anew at their depth
}

// Metrics returns figures for operators.
func (ix *Index) Metrics() Metrics {
	return Metrics{
		Entries:  ix.Len(),
		Bytes:    ix.Bytes(),
		Splits:   ix.counts.splits.Load(),
		Rebuilds: ix.counts.rebuilds.Load(),
	}
}
