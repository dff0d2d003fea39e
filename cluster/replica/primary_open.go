package replica

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Open opens a segment at its backups. One that refuses, is dead or silent is
// replaced by another; if there are too few, it waits for more, or until the keeper
// has decided that fewer must do.
func (p *Primary) Open(ctx context.Context, id record.SegmentID, memory []byte) error {
	ctx, cancel := p.bound(ctx)
	defer cancel()
	g := newOpenSegment(id, memory)
	p.mu.Lock()
	p.books.opening[id] = true
	p.mu.Unlock()
	for patience := p.o.OpenTimeout; ; patience = min(2*patience, p.o.CallTimeout) {
		news := p.keeper.changes()
		m := p.o.Members()
		err := p.recruit(ctx, g, m, recruiting{patience: patience})
		done, raised := p.enlist(ctx, g)
		switch {
		case done:
			return nil
		case raised:
			continue
		}
		p.keeper.wake()
		select {
		case <-ctx.Done():
			p.giveUp(g)
			return fmt.Errorf("open segment %d at enough backups: %w", id, errors.Join(context.Cause(ctx), err))
		case <-m.Changed:
		case <-news:
			rest(ctx, leastPause) // It was woken above, and tells each time that it has looked.
		case <-time.After(firstPause):
		}
	}
}

// bound ends a caller's context with the primary's.
func (p *Primary) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(errEnded) })
	return ctx, func() { stop(); cancel(nil) }
}

var errEnded = errors.New("replication has ended")

func (p *Primary) giveUp(g *openSegment) {
	p.mu.Lock()
	delete(p.books.opening, g.id)
	dropped := g.drop(func(*stream) bool { return true })
	p.mu.Unlock()
	p.end(dropped...)
}

// enlist publishes a segment that has enough good copies, all of the version that
// is being raised, if one is. Else it tells whether something has changed.
func (p *Primary) enlist(ctx context.Context, g *openSegment) (done, raised bool) {
	p.mu.Lock()
	bad := g.drop(func(s *stream) bool { return !s.good() })
	version := p.books.raising
	var behind []*stream
	for _, s := range *g.copies.Load() {
		if s.version < version {
			behind = append(behind, s)
		}
	}
	if done = len(behind) == 0 && len(*g.copies.Load()) >= p.books.copies; done {
		p.publish(g)
	}
	for _, s := range bad {
		p.strays.note(s.node, g.id)
	}
	p.mu.Unlock()
	p.end(bad...)
	for _, s := range behind {
		p.raiseOne(ctx, s, version)
	}
	return done, len(behind) > 0
}

// raiseOne raises a replica that was opened while the version rose.
func (p *Primary) raiseOne(ctx context.Context, s *stream, version uint64) {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	r := RaiseRequest{Log: p.source.LogID, Version: version, Segments: []record.SegmentID{s.seg.id}}
	if _, err := p.call(ctx, s.node, MethodRaise, r, nil, nil); err != nil {
		s.condemned.Store(true)
		return
	}
	s.version = version
}

// recruiting is how replicas are opened.
type recruiting struct {
	creating bool          // they replace others of a segment in use
	patience time.Duration // with a node that does not answer
}

// recruit opens as many replicas as are missing, each at another node. It returns
// when there are enough, or nobody else can be asked.
func (p *Primary) recruit(ctx context.Context, g *openSegment, m Membership, how recruiting) error {
	usable, unheard := p.usable(m.Living), p.unheard(m.Living)
	p.mu.Lock()
	candidates := p.books.placer.choose(usable, g.taken())
	if need := p.books.copies - g.goodCopies(); len(candidates) < need {
		candidates = append(candidates, p.books.placer.choose(unheard, g.taken())...)
	}
	want := max(p.books.copies, min(p.o.Copies, len(usable)))
	p.mu.Unlock()
	var failed error
	for len(candidates) > 0 && ctx.Err() == nil {
		missing := min(want-g.goodCopies(), len(candidates))
		if missing <= 0 {
			break
		}
		failed = errors.Join(failed, p.openAt(ctx, g, candidates[:missing], how))
		candidates = candidates[missing:]
	}
	return failed
}

// openAt opens the segment at all of nodes, at the same time.
func (p *Primary) openAt(ctx context.Context, g *openSegment, nodes []Member, how recruiting) error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = p.openOn(ctx, g, n.ID, how) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// openOn opens a replica and makes a stream to it one that counts.
func (p *Primary) openOn(ctx context.Context, g *openSegment, node view.NodeID, how recruiting) error {
	s, err := p.openStream(ctx, g, node, how)
	if err != nil {
		if ctx.Err() == nil {
			p.avoid(node, false, err)
			p.mu.Lock()
			p.books.counts.refusals++
			p.mu.Unlock()
			p.o.Log.Warn("a backup did not open a replica; another one is asked", "node", node, "segment", g.id, "error", err)
		}
		return err
	}
	p.welcome(node)
	if err := p.admit(g, s); err != nil {
		p.end(s)
		return err
	}
	s.join()
	s.again()
	return nil
}

// admit makes a stream one that counts, unless the segment is finished: nobody waits
// for its memory to be copied any more, and it may be gone.
func (p *Primary) admit(g *openSegment, s *stream) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished {
		return fmt.Errorf("segment %d has all its copies by now", g.id)
	}
	if err := p.stillBackup(s.node); err != nil {
		return err
	}
	g.add(s)
	return nil
}

func (p *Primary) openStream(ctx context.Context, g *openSegment, node view.NodeID, how recruiting) (*stream, error) {
	ctx, cancel := context.WithTimeout(ctx, how.patience)
	defer cancel()
	// A node that is a backup already needs no ledger. So while etcd is away others are taken.
	if err := p.addBackup(ctx, node); err != nil {
		return nil, err
	}
	l, err := p.linkTo(ctx, node)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if !p.strays.reuse(node, g.id) {
		p.mu.Unlock()
		rest(ctx, firstPause) // It may be the only one that can be asked.
		return nil, fmt.Errorf("node %s is just dropping its replica of segment %d", node, g.id)
	}
	request := OpenRequest{
		Log: p.source.LogID, Segment: g.id, Version: p.books.raising, Bytes: uint32(len(g.memory)), Creating: how.creating,
		Roster: p.books.roster(*p.open.Load(), p.water.batch()), Number: p.strays.number(),
	}
	p.mu.Unlock()
	var answer OpenAnswer
	if _, err := p.call(ctx, node, MethodOpen, request, nil, &answer); err != nil {
		if said := new(peer.Error); !errors.As(err, &said) {
			p.mu.Lock()
			p.strays.note(node, g.id) // It may be open there, or soon.
			p.mu.Unlock()
		}
		return nil, err
	}
	p.storedRoster(&request.Roster)
	return p.newStream(g, l, &request, answer)
}

func (p *Primary) newStream(g *openSegment, l *link, q *OpenRequest, a OpenAnswer) (*stream, error) {
	s := &stream{seg: g, node: l.node, link: l, version: q.Version, fresh: q.Creating, complete: make(chan struct{})}
	s.posted.Store(a.End)
	s.done.Store(a.End)
	s.goal.Store(math.MaxUint32) // Others may write through it before it has joined.
	if l.sender != nil {
		s.wire = &byCall{sender: l.sender, stream: s, handle: a.Handle}
		l.sender.add(s)
	} else {
		if a.Region.Bytes < uint64(len(g.memory)) {
			// It has no queue pairs of this link: it is another process than the one that was linked. Nobody has
			// written there since, or it would be known.
			err := fmt.Errorf("node %s was started again since it was linked", l.node)
			p.mu.Lock()
			p.strays.note(l.node, g.id)
			p.mu.Unlock()
			l.fail(err)
			return nil, err
		}
		ring, err := p.staging.take()
		if err != nil {
			return nil, err
		}
		s.wire = &oneSided{qp: l.lane(), target: a.Region, ring: ring, link: l}
	}
	p.register(s)
	return s, nil
}

// addBackup makes sure that the ledger has a node before it gets its first replica. It may be
// excluded again before it has one: see stillBackup.
func (p *Primary) addBackup(ctx context.Context, node view.NodeID) error {
	if p.isBackup(node) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	if err := p.ledger.take(ctx); err != nil {
		return fmt.Errorf("note node %s as a backup: %w", node, err)
	}
	defer p.ledger.end()
	if p.isBackup(node) {
		return nil
	}
	err := p.o.Ledger.AddBackup(ctx, node)
	p.mu.Lock()
	p.books.backups[node] = err == nil
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("note node %s as a backup: %w", node, err)
	}
	if !has(p.o.Members().Living, node) {
		p.keeper.wake() // It left while somebody turned to it, and perhaps was excluded before.
	}
	return nil
}

func (p *Primary) isBackup(node view.NodeID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.books.backups[node]
}

// stillBackup fails if a node was excluded while it got a replica: no recovery would ask it. The
// caller holds mu.
func (p *Primary) stillBackup(node view.NodeID) error {
	if !p.books.backups[node] {
		return fmt.Errorf("node %s was taken from the backups while it got a replica", node)
	}
	return nil
}

// linkTo gives the link to a node, and makes it if there is none. A link that is not
// good is the keeper's to take away.
func (p *Primary) linkTo(ctx context.Context, node view.NodeID) (*link, error) {
	unlock := p.keeper.dialing(node)
	defer unlock()
	p.mu.Lock()
	l := p.books.links[node]
	p.mu.Unlock()
	if l != nil {
		if !l.good() {
			return nil, fmt.Errorf("node %s is being replaced: %s", node, l.why())
		}
		return l, nil
	}
	l, err := p.dial(ctx, node)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.books.links[node] = l
	return l, nil
}

// goodCopies is how many copies there are to rely on.
func (g *openSegment) goodCopies() int { return g.number((*stream).good) }

// number is how many copies are of a kind.
func (g *openSegment) number(of func(*stream) bool) int {
	n := 0
	for _, s := range *g.copies.Load() {
		if of(s) {
			n++
		}
	}
	return n
}

// taken are nodes where no other replica may be opened: they have one that is good, or
// one that went bad. One whose link broke may be opened again through another.
func (g *openSegment) taken() []view.NodeID {
	var nodes []view.NodeID
	for _, s := range *g.copies.Load() {
		if s.good() || s.condemned.Load() {
			nodes = append(nodes, s.node)
		}
	}
	return nodes
}
