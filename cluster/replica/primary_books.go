package replica

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// books is what a primary knows of its log's copies, under its mu.
type books struct {
	// number is that of the newest roster, and stored of the newest that some backup has.
	number, stored uint64
	// version is what all open replicas that count have at least; raising is what new
	// ones get. They differ while the version is being raised.
	version, raising uint64
	// copies is what the ledger says at most: every segment has so many, or a node that failed
	// is among the backups still. The ledger may say less if unsure, for its last answer was lost.
	copies int
	unsure bool

	opening map[record.SegmentID]bool // not open at all their backups yet
	closed  map[record.SegmentID]*closedSegment
	backups map[view.NodeID]bool // those in the ledger; false: perhaps
	ghosts  map[view.NodeID]bool // whose nodes were asked what they have left
	links   map[view.NodeID]*link
	// troubled nodes are tried again at that time.
	troubled map[view.NodeID]trouble

	streams uint32 // the number of the last one
	placer  *placer
	counts  counts
}

// trouble is why a node is not asked for a while.
type trouble struct {
	until time.Time
	pause time.Duration
	// broken says that it was linked and cannot be linked again, so that it is as good as
	// dead; else it is slow, or has refused something.
	broken bool
	// unheard says that it did not answer in time. It is asked only if nobody else can be,
	// until it has answered a probe: nobody shall wait for it again and again.
	unheard bool
}

// closedSegment is a segment that is whole, here and in its copies.
type closedSegment struct {
	id record.SegmentID
	Closing
	summed  bool
	holders []view.NodeID
	// unclosed are those of holders that have not confirmed that it is closed: for them
	// it has a version, and is raised with the open ones.
	unclosed map[view.NodeID]bool
	// adopting says that it is a side segment that lacks copies and may be nowhere yet.
	adopting bool
	// partly are nodes that have something of it, which a copy would replace.
	partly []view.NodeID
}

func (b *books) begin(o PrimaryOptions) {
	*b = books{
		version: o.Version, raising: o.Version, copies: o.HadCopies,
		opening: map[record.SegmentID]bool{}, closed: map[record.SegmentID]*closedSegment{},
		backups: map[view.NodeID]bool{}, ghosts: map[view.NodeID]bool{}, links: map[view.NodeID]*link{}, troubled: map[view.NodeID]trouble{},
		placer: newPlacer(o.Self, o.Copies, o.Placement),
	}
	for _, n := range o.Backups {
		b.backups[n] = true
	}
}

func (b *books) takeLinks() []*link {
	all := slices.Collect(maps.Values(b.links))
	clear(b.links)
	return all
}

// usable are living nodes other than this one that are in no trouble.
func (p *Primary) usable(living []Member) []Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	var all []Member
	for _, m := range living {
		if t := p.books.troubled[m.ID]; m.ID != p.o.Self && !t.unheard && !now.Before(t.until) {
			all = append(all, m)
		}
	}
	return all
}

// unheard are living nodes that did not answer in time.
func (p *Primary) unheard(living []Member) []Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Member
	for _, m := range living {
		if m.ID != p.o.Self && p.books.troubled[m.ID].unheard {
			all = append(all, m)
		}
	}
	return all
}

// reachable is how many living nodes there are that could be backups, sooner or
// later. One that is out of reach counts again when it is time to try it.
func (b *books) reachable(self view.NodeID, living []Member, now time.Time) int {
	n := 0
	for _, m := range living {
		if t := b.troubled[m.ID]; m.ID != self && !(t.broken && now.Before(t.until)) {
			n++
		}
	}
	return n
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// avoid leaves a node alone for a while, longer each time.
func (p *Primary) avoid(node view.NodeID, broken bool, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.books.troubled[node]
	t.pause = min(max(firstPause, 2*t.pause), maxPause)
	t.broken = t.broken || broken
	t.unheard = t.unheard || errors.Is(why, context.DeadlineExceeded)
	t.until = p.o.Now().Add(t.pause)
	p.books.troubled[node] = t
}

// welcome ends a node's trouble.
func (p *Primary) welcome(node view.NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.books.troubled, node)
}

// roster makes a new roster of all segments.
func (p *Primary) roster() Roster {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.books.roster(*p.open.Load(), p.water.batch())
}

// roster makes the next roster. safe was read before the segments in opening were
// written to.
func (b *books) roster(open map[record.SegmentID]*openSegment, safe record.BatchID) Roster {
	b.number++
	opening := slices.Collect(maps.Keys(b.opening))
	all := slices.Clone(opening)
	for id, c := range b.closed {
		if all = append(all, id); c.adopting {
			opening = append(opening, id)
		}
	}
	all = append(all, slices.Collect(maps.Keys(open))...)
	return Roster{Number: b.number, Version: b.version, Safe: safe, Segments: RunsOf(all...), Opening: RunsOf(opening...)}
}

// publish makes an opened segment one that its head may write to. The caller holds mu.
func (p *Primary) publish(g *openSegment) {
	all := maps.Clone(*p.open.Load())
	all[g.id] = g
	p.open.Store(&all)
	delete(p.books.opening, g.id)
}

// unpublish takes one away. The caller holds mu.
func (p *Primary) unpublish(id record.SegmentID) {
	all := maps.Clone(*p.open.Load())
	delete(all, id)
	p.open.Store(&all)
}

// register makes a stream's completions find it.
func (p *Primary) register(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.books.streams++
	s.number = p.books.streams
	all := maps.Clone(*p.streams.Load())
	all[s.number] = s
	p.streams.Store(&all)
}

// end retires streams.
func (p *Primary) end(streams ...*stream) {
	if len(streams) == 0 {
		return
	}
	for _, s := range streams {
		s.retire()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := maps.Clone(*p.streams.Load())
	for _, s := range streams {
		delete(all, s.number)
	}
	p.streams.Store(&all)
}

// storedRoster notes that a backup has a roster.
func (p *Primary) storedRoster(r *Roster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.books.stored = max(p.books.stored, r.Number)
}

// RosterNumber is that of the newest roster that a backup has. Who waits for one that was made, and that nobody could be
// sent, might wait for ever.
func (p *Primary) RosterNumber() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.books.stored
}
