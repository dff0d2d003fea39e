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
	mu      sync.Mutex
	gauges  []*Gauge
	ended   [Slots]uint32 // what workers that are gone had counted
	last    [Slots]uint32
	at      time.Time
	watched atomic.Uint64 // a place whose notes are counted by themselves
	hits    uint32        // when they were last looked at
	notes   uint32
}

// NewMeter returns a meter that begins now.
func NewMeter() *Meter { return &Meter{at: time.Now()} }

// Gauge is one worker's. Only that worker notes anything.
type Gauge struct {
	meter  *Meter
	counts [Slots]atomic.Uint32
	rounds uint32
	vote   vote
	pairs  pairs
}

// Gauge gives a worker its own. A nil meter gives one that is never looked at.
func (m *Meter) Gauge() *Gauge {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := &Gauge{meter: m}
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
	g.vote.note(p, record.Place(g.meter.watched.Load()))
}

// Together says that one request uses two keys.
func (g *Gauge) Together(a, b record.Place) { g.pairs.add(a.Slot(), b.Slot()) }

// Reading is what a meter has seen since the last one.
type Reading struct {
	Ops   []float64 // a second, by slot
	Links []Link
	Hot   Hot
}

// Take returns what was done since the last Take.
func (m *Meter) Take() Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	seconds := max(now.Sub(m.at).Seconds(), 1e-3)
	m.at = now
	r := Reading{Ops: make([]float64, Slots)}
	for slot := range r.Ops {
		sum := m.ended[slot]
		for _, g := range m.gauges {
			sum += g.counts[slot].Load()
		}
		r.Ops[slot] = float64(sum-m.last[slot]) * sampleRounds / seconds
		m.last[slot] = sum
	}
	var all pairs
	for _, g := range m.gauges {
		all.addAll(&g.pairs)
	}
	r.Links, r.Hot = all.links(sampleRounds/seconds), m.takeHot()
	return r
}

// takeHot tells of the place that was watched, and watches the one that the busiest worker has elected.
func (m *Meter) takeHot() (h Hot) {
	var hits, notes, most uint32
	watched := m.watched.Load()
	next := watched
	for _, g := range m.gauges {
		n := g.vote.notes.Load()
		hits, notes = hits+g.vote.hits.Load(), notes+n
		if n > most {
			most, next = n, g.vote.elected.Load()
		}
	}
	if d := notes - m.notes; d > 0 && watched != 0 && hits >= m.hits && notes >= m.notes {
		h = Hot{record.Place(watched).Slot(), float64(hits-m.hits) / float64(d)}
	}
	m.hits, m.notes = hits, notes
	m.watched.Store(next)
	return h
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
