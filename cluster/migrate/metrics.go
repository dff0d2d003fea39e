package migrate

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/cluster/meta"
)

// Metrics count what a driver does, and has done for as long as it lives.
type Metrics struct {
	Stages  map[string]int // migrations to this node under way, by what they do
	Waiting int            // keys that operations wait for

	Records, Bytes int64 // that were brought
	Pulls          int64
	PriorityPulls  int64
	PriorityKeys   int64 // that they asked for

	Done, Cancelled, Failed int64 // migrations to this node
}

// counts are those of all migrations.
type counts struct {
	records, bytes              atomic.Int64
	pulls                       atomic.Int64
	priorityPulls, priorityKeys atomic.Int64
	done, cancelled, failed     atomic.Int64
}

// stages are all that a move can be at.
var stages = []stage{queued, sampling, yielding, opening, pulling, adopting, completing, returning, over}

// Metrics tells how far migrations have come.
func (d *Driver) Metrics() Metrics {
	c := &d.count
	sum := Metrics{
		Stages: map[string]int{}, Records: c.records.Load(), Bytes: c.bytes.Load(), Pulls: c.pulls.Load(),
		PriorityPulls: c.priorityPulls.Load(), PriorityKeys: c.priorityKeys.Load(),
		Done: c.done.Load(), Cancelled: c.cancelled.Load(), Failed: c.failed.Load(),
	}
	for _, s := range stages {
		sum.Stages[string(s)] = 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.moves {
		sum.Stages[string(*m.now.Load())]++
		sum.Waiting += m.priority.waiting()
	}
	return sum
}

// brought counts what a pull brought.
func (m *move) brought(records uint32, entries []byte) {
	m.records.Add(int64(records))
	m.bytes.Add(int64(len(entries)))
	m.d.count.records.Add(int64(records))
	m.d.count.bytes.Add(int64(len(entries)))
}

// ended counts a migration that is over.
func (c *counts) ended(as meta.Stage) {
	switch as {
	case meta.Done:
		c.done.Add(1)
	case meta.Cancelled:
		c.cancelled.Add(1)
	default:
		c.failed.Add(1)
	}
}
