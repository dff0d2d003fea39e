package balance

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/record"
)

// sampleRounds is in how many rounds of a worker one is looked at.
const sampleRounds = 16

// Meter counts what a node's workers do, by slot. They count in places of their own,
// and in few of their rounds only: it costs next to nothing.
type Meter struct {
	mu     sync.Mutex
	gauges []*Gauge
	ended  [Slots]uint32 // what workers that are gone had counted
	last   [Slots]uint32
	at     time.Time
}

// NewMeter returns a meter that begins now.
func NewMeter() *Meter { return &Meter{at: time.Now()} }

// Gauge is one worker's. Only that worker notes anything.
type Gauge struct {
	counts [Slots]atomic.Uint32
	rounds uint32
}

// Gauge gives a worker its own. A nil meter gives one that is never looked at.
func (m *Meter) Gauge() *Gauge {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := &Gauge{}
	m.gauges = append(m.gauges, g)
	return g
}

// Begin begins a round. It returns g if the round is one that is looked at, and else nil.
func (g *Gauge) Begin() *Gauge {
	if g == nil {
		return nil
	}
	if g.rounds++; g.rounds%sampleRounds != 0 {
		return nil
	}
	return g
}

// Note counts an operation on a key at p.
func (g *Gauge) Note(p record.Place) {
	at := &g.counts[p.Slot()]
	at.Store(at.Load() + 1) // Nobody else writes.
}

// Take returns operations a second by slot since the last Take.
func (m *Meter) Take() []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	seconds := max(now.Sub(m.at).Seconds(), 1e-3)
	m.at = now
	ops := make([]float64, Slots)
	for slot := range ops {
		sum := m.ended[slot]
		for _, g := range m.gauges {
			sum += g.counts[slot].Load()
		}
		ops[slot] = float64(sum-m.last[slot]) * sampleRounds / seconds
		m.last[slot] = sum
	}
	return ops
}

// Drop says that a worker is gone.
func (m *Meter) Drop(g *Gauge) {
	if g == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, one := range m.gauges {
		if one == g {
			m.gauges = append(m.gauges[:i], m.gauges[i+1:]...)
			for slot := range m.ended {
				m.ended[slot] += g.counts[slot].Load()
			}
			return
		}
	}
}
