package migrate

import "github.com/ostrodb/ostro/cluster/meta"

// Totals count what a driver has done for as long as it lives.
type Totals struct {
	Stages map[string]int // migrations to this node under way, by what they do

	AllRecords, AllBytes int64 // that were brought
	Pulls                int64
	PriorityPulls        int64
	PriorityKeys         int64 // that they asked for

	ColdShared, ColdAsked, ColdSent int64 // cold records that followed, by the way they came

	Done, Cancelled, Failed int64 // migrations to this node
}

// stages are those that a move goes through.
var stages = []stage{queued, sampling, yielding, opening, pulling, settling, adopting, completing, returning, over}

// add counts what a move has brought.
func (t *Totals) add(m *move) {
	t.AllRecords += m.records.Load()
	t.AllBytes += m.bytes.Load()
	t.Pulls += m.pulled.Load()
	t.PriorityKeys += m.asked.Load()
	t.PriorityPulls += m.asks.Load()
	cold := m.cold.followed()
	t.ColdShared += cold.Shared
	t.ColdAsked += cold.Asked
	t.ColdSent += cold.Sent
}

// end counts a move that is over.
func (t *Totals) end(m *move, as meta.Stage) {
	t.add(m)
	switch as {
	case meta.Done:
		t.Done++
	case meta.Cancelled:
		t.Cancelled++
	default:
		t.Failed++
	}
}

// totals are those of all migrations; d.mu is held.
func (d *Driver) totals() Totals {
	sum := d.past
	sum.Stages = map[string]int{}
	for _, s := range stages {
		sum.Stages[string(s)] = 0
	}
	for _, m := range d.moves {
		sum.add(m)
		sum.Stages[string(*m.now.Load())]++
	}
	return sum
}
