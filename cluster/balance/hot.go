package balance

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// Hot is a key that has a large share of a node's load.
type Hot struct {
	Slot  uint16  `json:"slot"`
	Share float64 `json:"share"` // of the node's operations, 0 to 1
}

// vote finds the key that is used more than all others together, if there is one, by majority: one place is the
// candidate, others take its votes away. What it finds is then counted, see Meter.
type vote struct {
	candidate record.Place
	votes     int
	elected   atomic.Uint64 // the candidate, for others to read
	hits      atomic.Uint32 // notes of the place that is watched
	notes     atomic.Uint32
}

func (v *vote) note(p, watched record.Place) {
	v.notes.Store(v.notes.Load() + 1) // Nobody else writes.
	if p == watched {
		v.hits.Store(v.hits.Load() + 1)
	}
	switch {
	case p == v.candidate:
		v.votes++
	case v.votes > 0:
		v.votes--
	default:
		v.candidate, v.votes = p, 1
		v.elected.Store(uint64(p))
	}
}
