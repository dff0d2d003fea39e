package replica

import (
	"context"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// strays are replicas that a backup has, or may have, and that do not count: it was too slow to
// answer, or out of reach before the segment was used. They would keep their buffers
// until the segment is dropped.
type strays struct {
	news chan struct{}
	all  map[view.NodeID]map[record.SegmentID]bool // true while a call is under way
	last uint64                                    // number of a request
}

func (s *strays) begin() {
	s.news, s.all = make(chan struct{}, 1), map[view.NodeID]map[record.SegmentID]bool{}
}

// note is called under the primary's mu.
func (s *strays) note(node view.NodeID, id record.SegmentID) {
	if s.all[node] == nil {
		s.all[node] = map[record.SegmentID]bool{}
	}
	s.all[node][id] = false
	poke(s.news)
}

// number is for a request to open or discard. Later processes of the log have higher ones, as long as the clock is not set back;
// if it is, strays stay until their segments are dropped. It is called under the primary's mu.
func (s *strays) number() uint64 {
	s.last = max(s.last+1, uint64(time.Now().UnixNano()))
	return s.last
}

// reuse tells whether a replica may be opened there, and then it is no stray any
// more. It is called under the primary's mu.
func (s *strays) reuse(node view.NodeID, id record.SegmentID) bool {
	if s.all[node][id] {
		return false
	}
	delete(s.all[node], id)
	return true
}

func (p *Primary) strayLoop(ctx context.Context) {
	for {
		m := p.o.Members()
		left := false
		for _, n := range m.Living {
			left = p.discardAt(ctx, n.ID) || left
		}
		var again <-chan time.Time
		if left {
			again = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.strays.news:
		case <-m.Changed:
		case <-again:
		}
	}
}

// discardAt has a node drop its strays, and tells whether some are left.
func (p *Primary) discardAt(ctx context.Context, node view.NodeID) (left bool) {
	p.mu.Lock()
	var list []record.SegmentID
	for id := range p.strays.all[node] {
		if g := (*p.open.Load())[id]; g != nil && slices.Contains(g.holders(), node) {
			delete(p.strays.all[node], id)
			continue
		}
		p.strays.all[node][id] = true
		list = append(list, id)
	}
	number := p.strays.number()
	p.mu.Unlock()
	if len(list) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	_, err := p.call(ctx, node, MethodDiscard, DiscardRequest{Log: p.source.LogID, Segments: list, Number: number}, nil, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range list {
		if err == nil {
			delete(p.strays.all[node], id)
		} else {
			p.strays.all[node][id] = false
		}
	}
	return err != nil
}
