package balance

import "sync"

// mostPairs is how many a worker notes between two readings; those that come later are left out.
const mostPairs = 1024

// pairs counts slots that requests use together. Few requests do, and few of their rounds are looked at: a lock costs
// nothing there.
type pairs struct {
	mu     sync.Mutex
	counts map[[2]uint16]uint32
}

func (p *pairs) add(a, b uint16) {
	if a == b {
		return
	}
	if a > b {
		a, b = b, a
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil {
		p.counts = map[[2]uint16]uint32{}
	}
	if _, known := p.counts[[2]uint16{a, b}]; known || len(p.counts) < mostPairs {
		p.counts[[2]uint16{a, b}]++
	}
}

// addAll takes what another one has counted.
func (p *pairs) addAll(from *pairs) {
	from.mu.Lock()
	counts := from.counts
	from.counts = nil
	from.mu.Unlock()
	if p.counts == nil {
		p.counts = counts
		return
	}
	for pair, n := range counts {
		p.counts[pair] += n
	}
}

// links are those that are used most, each count worth so many requests a second.
func (p *pairs) links(worth float64) []Link {
	var all []Link
	for pair, n := range p.counts {
		all = append(all, Link{pair[0], pair[1], float64(n) * worth})
	}
	return strongest(all)
}
