package server

import (
	"sync"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/server/admin"
)

// balanced counts what this node's balancer has done, in all its terms as coordinator.
type balanced struct {
	mu      sync.Mutex
	sum     admin.Balancer
	pending map[uint64]bool // migrations that were asked for and have not ended
}

// saw counts a sample and what came of it.
func (b *balanced) saw(p balance.Plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum.Samples++
	b.sum.Ratio = p.Ratio
	b.sum.Decided += int64(len(p.Moves))
	if p.Held != "" {
		b.hold(p.Held)
	}
}

func (b *balanced) hold(why balance.Held) {
	if b.sum.Held == nil {
		b.sum.Held = map[string]int64{}
	}
	b.sum.Held[string(why)]++
}

// asked counts a migration that was asked for.
func (b *balanced) asked(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		b.pending = map[uint64]bool{}
	}
	b.pending[id] = true
	b.sum.Asked++
}

// follow counts those that have ended.
func (b *balanced) follow(s *meta.Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.pending {
		m, there := s.Migrations[id]
		switch {
		case there && m.Stage == meta.Done:
			b.sum.Done++
		case there && !m.Stage.Ended():
			continue
		default:
			b.sum.Failed++
		}
		delete(b.pending, id)
	}
}

// metrics are the sums, with all reasons.
func (b *balanced) metrics() admin.Balancer {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.sum
	m.Held = map[string]int64{}
	for _, why := range balance.Helds {
		m.Held[string(why)] = b.sum.Held[string(why)]
	}
	return m
}
