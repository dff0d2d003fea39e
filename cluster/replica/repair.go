package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// keeper sees to it that every segment has its copies. It is woken when a link fails, the
// members change, or the copier has done something.
//
// A replica is replaced in this order, and a death between any two steps loses
// nothing:
//
//  1. The new replica is opened, does not count yet, and gets all that was sealed.
//     From here on the watermark waits for it as well as for the old one.
//  2. All replicas that shall count get a higher version, by calls.
//  3. The ledger gets that version: the old replica is stale.
//  4. The watermark no longer waits for the old one.
//
// If the old one's queue pair is broken the watermark stands still in between;
// if only its process is silent, writes go on.
type keeper struct {
	news  chan struct{}
	moved chan struct{} // the watermark has moved, though nobody polled

	complained time.Time // when it last told of trouble

	mu      sync.Mutex
	changed chan struct{}
	orders  map[view.NodeID]*sync.Mutex
	dials   map[view.NodeID]*sync.Mutex
}

func (k *keeper) begin() {
	k.news, k.moved = make(chan struct{}, 1), make(chan struct{}, 1)
	k.changed = make(chan struct{})
	k.orders, k.dials = map[view.NodeID]*sync.Mutex{}, map[view.NodeID]*sync.Mutex{}
}

// wake makes the keeper look at everything again. It never waits.
func (k *keeper) wake() { poke(k.news) }

// advanced has the log told that the watermark has moved, by somebody who holds none of its locks.
func (k *keeper) advanced() { poke(k.moved) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// changes returns a channel that is closed when the keeper has changed something.
func (k *keeper) changes() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

func (k *keeper) tell() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// order keeps closing and raising of a node's replicas apart: what is being closed
// cannot be raised.
func (k *keeper) order(node view.NodeID) *sync.Mutex { return lockOf(&k.mu, k.orders, node) }

// dialing lets one caller at a time link to a node: a link ends the one before it.
func (k *keeper) dialing(node view.NodeID) (unlock func()) {
	m := lockOf(&k.mu, k.dials, node)
	m.Lock()
	return m.Unlock
}

func lockOf(mu *sync.Mutex, all map[view.NodeID]*sync.Mutex, node view.NodeID) *sync.Mutex {
	mu.Lock()
	defer mu.Unlock()
	if all[node] == nil {
		all[node] = new(sync.Mutex)
	}
	return all[node]
}

// linkFailed is called once for a link, by whoever found out.
func (p *Primary) linkFailed(l *link) {
	p.o.Log.Warn("a backup is out of reach; its replicas are made elsewhere", "node", l.node, "error", l.cause)
	p.keeper.wake()
}

func (p *Primary) keepLoop(ctx context.Context) {
	var before []Member
	patience := p.o.OpenTimeout
	for {
		m := p.o.Members()
		p.greet(before, m.Living)
		before = m.Living
		err := p.repair(ctx, m, patience)
		if patience = min(2*patience, p.o.CallTimeout); err == nil {
			patience = p.o.OpenTimeout
		}
		var again <-chan time.Time
		switch p.mu.Lock(); {
		case err != nil:
			again = time.After(firstPause)
		case p.books.copies < p.o.Copies:
			again = time.After(time.Second) // Nodes that are left alone for a while may be well again.
		}
		p.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			p.keeper.complain(p.o.Log, p.o.Now(), err)
			rest(ctx, leastPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.Changed:
		case <-p.keeper.news:
		case <-again:
		}
	}
}

// leastPause is how long the keeper rests after it failed. Those who wait for it wake it each time
// that it has tried.
const leastPause = 20 * time.Millisecond

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// complain logs trouble, once a second at most. It belongs to the keeper's loop.
func (k *keeper) complain(log *slog.Logger, now time.Time, err error) {
	if now.Sub(k.complained) >= time.Second {
		k.complained = now
		log.Warn("copies of the log are missing; trying again", "error", err)
	}
}

func (p *Primary) advanceLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.keeper.moved:
			p.source.Advanced()
		}
	}
}

// greet forgets the trouble of nodes that have a lease again: they were started anew.
func (p *Primary) greet(before, living []Member) {
	for _, m := range living {
		if !has(before, m.ID) {
			p.welcome(m.ID)
		}
	}
}

// repair brings the copies of all segments to what the members allow.
func (p *Primary) repair(ctx context.Context, m Membership, patience time.Duration) error {
	defer p.keeper.tell()
	p.lapse(m.Living)
	p.cutBroken(ctx, m.Living)
	if err := p.degrade(ctx, m); err != nil {
		return err
	}
	if err := p.replaceOpen(ctx, m, patience); err != nil {
		return err
	}
	p.dropSilent()
	p.copier.wake()
	return errors.Join(p.restore(ctx, m), p.exclude(ctx, m))
}

// lapse marks links to nodes whose lease is gone, and takes those nodes from the holders
// of closed segments. Nodes that are back are forgiven.
func (p *Primary) lapse(living []Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	for node, l := range p.books.links {
		switch {
		case has(living, node):
			if l.silent.Load() && now.After(l.unforgiven) {
				p.forgive(l)
			}
		case !l.silent.Swap(true):
			p.o.Log.Warn("a backup's lease has ended; its replicas are made elsewhere", "node", node)
		}
	}
	for _, c := range p.books.closed {
		for _, n := range c.holders {
			if !has(living, n) {
				c.leave(n)
			}
		}
	}
}

// forgive relies on a silent node again. Its queue pairs never broke, so it is the same process and
// has all that was written; what was left behind when a version was raised counts when
// it is raised, too. Without this a log whose backups had all been silent at once would
// have nobody to turn to. The caller holds mu.
func (p *Primary) forgive(l *link) {
	for _, s := range *p.streams.Load() {
		if s.link == l && s.version < p.books.version {
			s.fresh = true
		}
	}
	l.silent.Store(false)
	p.o.Log.Info("a backup that was silent is back", "node", l.node)
}

func has(members []Member, node view.NodeID) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.ID == node })
}

// cutBroken takes broken links away, so that a node that lives can be linked anew,
// and tries that at once: perhaps it was only restarted.
func (p *Primary) cutBroken(ctx context.Context, living []Member) {
	p.mu.Lock()
	var broken []*link
	for node, l := range p.books.links {
		if l.broken.Load() {
			broken = append(broken, l)
			delete(p.books.links, node)
		}
	}
	p.mu.Unlock()
	for _, l := range broken {
		if err := l.close(); err != nil {
			p.o.Log.Debug("a broken link did not close", "node", l.node, "error", err)
		}
		if !has(living, l.node) {
			continue
		}
		if err := p.tryLink(ctx, l.node); err != nil {
			p.avoid(l.node, true, err)
			p.o.Log.Info("a backup cannot be linked again yet", "node", l.node, "error", err)
		}
	}
}

func (p *Primary) tryLink(ctx context.Context, node view.NodeID) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.OpenTimeout)
	defer cancel()
	_, err := p.linkTo(ctx, node)
	return err
}

// degrade tells the ledger that there will be fewer copies, before that is so.
func (p *Primary) degrade(ctx context.Context, m Membership) error {
	p.mu.Lock()
	usable, copies := p.books.reachable(p.o.Self, m.Living, p.o.Now()), p.books.copies
	p.mu.Unlock()
	target := min(p.o.Copies, usable)
	switch {
	case target >= copies:
		return nil
	case target == 0 && m.Known > 1:
		return fmt.Errorf("no other node lives to keep a copy: %d are known", m.Known-1)
	}
	if err := p.setCopies(ctx, target); err != nil {
		return err
	}
	p.o.Log.Warn("too few nodes live: each segment has fewer copies from now on", "copies", target, "wanted", p.o.Copies)
	return nil
}

func (p *Primary) setCopies(ctx context.Context, copies int) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	if err := p.o.Ledger.SetCopies(ctx, copies); err != nil {
		return fmt.Errorf("note that each segment has %d copies: %w", copies, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.books.copies = copies
	return nil
}

// lacking are open segments that have a bad copy, one that does not count yet, or fewer
// than they could.
func (p *Primary) lacking(usable int) []*openSegment {
	p.mu.Lock()
	defer p.mu.Unlock()
	want := max(p.books.copies, min(p.o.Copies, usable))
	var all []*openSegment
	for _, g := range *p.open.Load() {
		if n := g.number((*stream).counts); n < want || n < len(*g.copies.Load()) {
			all = append(all, g)
		}
	}
	return all
}

// replaceOpen gives open segments new replicas for those that went bad.
func (p *Primary) replaceOpen(ctx context.Context, m Membership, patience time.Duration) error {
	lacking := p.lacking(len(p.usable(m.Living)))
	if len(lacking) == 0 {
		return nil
	}
	began := p.o.Now()
	var refused error
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, g := range lacking {
		all.Go(func() {
			err := p.recruit(ctx, g, m, recruiting{creating: true, patience: patience})
			mu.Lock()
			defer mu.Unlock()
			refused = errors.Join(refused, err)
		})
	}
	all.Wait()
	for _, g := range lacking {
		if err := p.awaitCopies(ctx, g, m.Changed); err != nil {
			return errors.Join(err, refused)
		}
	}
	if !p.unsettled() {
		return nil // Nobody could take another copy.
	}
	if err := p.raise(ctx); err != nil {
		return err
	}
	if err := p.swap(); err != nil {
		return err
	}
	p.o.Log.Info("open segments have their copies again", "segments", len(lacking), "took", p.o.Now().Sub(began))
	return nil
}

// unsettled tells whether a copy is to be left out, or to count from now on.
func (p *Primary) unsettled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range *p.open.Load() {
		if g.number(func(s *stream) bool { return !s.counts() }) > 0 {
			return true
		}
	}
	return false
}

// awaitCopies returns when so many good copies of the segment are complete as each must have.
func (p *Primary) awaitCopies(ctx context.Context, g *openSegment, changed <-chan struct{}) error {
	for _, s := range *g.copies.Load() {
		for s.good() {
			select {
			case <-s.complete:
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				return errors.New("the members have changed")
			case <-time.After(time.Millisecond): // Its link may have failed.
				continue
			}
			break
		}
	}
	p.mu.Lock()
	need := p.books.copies
	p.mu.Unlock()
	if good := g.goodCopies(); good < need {
		return fmt.Errorf("segment %d has %d good copies of %d", g.id, good, need)
	}
	return nil
}

// swap leaves out bad copies of all segments that have enough good ones: they are
// stale by now. What waited for them counts.
func (p *Primary) swap() error {
	p.mu.Lock()
	var dropped []*stream
	segments := slices.Collect(maps.Values(*p.open.Load()))
	left := 0
	for _, g := range segments {
		counts := func(s *stream) bool { return s.good() && s.version >= p.books.version }
		if n := g.number(counts); n >= p.books.copies {
			dropped = append(dropped, g.drop(func(s *stream) bool { return !counts(s) })...)
		} else {
			left++
		}
	}
	p.books.counts.replaced += uint64(len(dropped))
	p.mu.Unlock()
	p.end(dropped...)
	moved := false
	for _, g := range segments {
		moved = p.count(g) || moved
	}
	if moved {
		p.source.Advanced()
	}
	if left > 0 {
		return fmt.Errorf("%d open segments have lost another copy meanwhile", left)
	}
	return nil
}

// dropSilent closes links to silent nodes that no stream needs.
func (p *Primary) dropSilent() {
	p.mu.Lock()
	used := map[*link]bool{}
	for _, s := range *p.streams.Load() {
		used[s.link] = true
	}
	var unused []*link
	for node, l := range p.books.links {
		if l.silent.Load() && !used[l] {
			unused = append(unused, l)
			delete(p.books.links, node)
		}
	}
	p.mu.Unlock()
	for _, l := range unused {
		if err := l.close(); err != nil {
			p.o.Log.Debug("a link did not close", "node", l.node, "error", err)
		}
	}
}

// restore tells the ledger that all segments have more copies, once they have.
func (p *Primary) restore(ctx context.Context, m Membership) error {
	p.mu.Lock()
	copies := p.books.copies
	target := min(p.leastCopies(), p.books.reachable(p.o.Self, m.Living, p.o.Now()))
	// First here, so that what is opened meanwhile has as many, too.
	p.books.copies = max(copies, target)
	p.mu.Unlock()
	if target <= copies {
		return nil
	}
	stored, err := p.sendRoster(ctx, m.Living)
	if stored < target {
		err = errors.Join(fmt.Errorf("only %d of %d backups have stored the roster", stored, target), err)
	} else {
		err = p.setCopies(ctx, target)
	}
	if err != nil {
		p.mu.Lock()
		p.books.copies = copies
		p.mu.Unlock()
		return err
	}
	p.o.Log.Info("each segment has more copies again", "copies", target, "wanted", p.o.Copies)
	return nil
}

// leastCopies is how many copies each segment has. The caller holds mu.
func (p *Primary) leastCopies() int {
	least := p.o.Copies
	for _, g := range *p.open.Load() {
		least = min(least, g.number((*stream).counts))
	}
	for _, c := range p.books.closed {
		least = min(least, len(c.holders))
	}
	return least
}

// exclude takes dead nodes from the ledger's backups once nothing needs them.
func (p *Primary) exclude(ctx context.Context, m Membership) error {
	p.mu.Lock()
	var gone []view.NodeID
	for n := range p.books.backups {
		if !has(m.Living, n) {
			gone = append(gone, n)
		}
	}
	enough := p.leastCopies() >= p.books.copies
	p.mu.Unlock()
	if len(gone) == 0 || !enough {
		return nil
	}
	// Some of those who stored the newest roster may be among the dead.
	if err := p.spreadRoster(ctx, m.Living); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	for _, n := range gone {
		if err := p.o.Ledger.Exclude(ctx, n); err != nil {
			return fmt.Errorf("note that node %s is no backup any more: %w", n, err)
		}
		p.mu.Lock()
		delete(p.books.backups, n)
		p.mu.Unlock()
		p.o.Log.Info("a backup that is gone is no longer needed", "node", n)
	}
	return nil
}

// raise gives all good replicas the next version, then the ledger.
func (p *Primary) raise(ctx context.Context) error {
	p.mu.Lock()
	p.books.raising++
	version := p.books.raising
	p.forfeitUnclosed()
	lists := p.raisable()
	p.mu.Unlock()
	errs := make([]error, len(lists))
	nodes := slices.Sorted(maps.Keys(lists))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = p.raiseAt(ctx, n, version) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("raise the replica version to %d: %w", version, err)
	}
	return p.raiseLedger(ctx, version)
}

// forfeitUnclosed leaves out replicas that wait to be closed at nodes that are out of reach.
// They are whole, but will be stale for those nodes. The caller holds mu.
func (p *Primary) forfeitUnclosed() {
	for _, c := range p.books.closed {
		for n := range c.unclosed {
			if l := p.books.links[n]; l == nil || !l.good() {
				c.leave(n)
				c.partly = append(c.partly, n)
			}
		}
	}
}

// raisable lists, for each node, its replicas that count and have a version. The caller
// holds mu.
func (p *Primary) raisable() map[view.NodeID][]record.SegmentID {
	lists := map[view.NodeID][]record.SegmentID{}
	for _, g := range *p.open.Load() {
		for _, s := range *g.copies.Load() {
			if s.good() {
				lists[s.node] = append(lists[s.node], g.id)
			}
		}
	}
	for _, c := range p.books.closed {
		for n := range c.unclosed {
			lists[n] = append(lists[n], c.id)
		}
	}
	return lists
}

// raiseAt raises what a node has. A node that does not answer is out of reach: its
// replicas would become stale.
func (p *Primary) raiseAt(ctx context.Context, node view.NodeID, version uint64) error {
	order := p.keeper.order(node)
	order.Lock()
	defer order.Unlock()
	p.mu.Lock()
	list := p.raisable()[node]
	l := p.books.links[node]
	p.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	_, err := p.call(ctx, node, MethodRaise, RaiseRequest{Log: p.source.LogID, Version: version, Segments: list}, nil, nil)
	if err != nil {
		if l != nil && !errors.Is(err, ErrNotFound) {
			p.mu.Lock()
			l.unforgiven = p.o.Now().Add(maxPause)
			p.mu.Unlock()
			l.silent.Store(true) // Writes go on there until it is replaced.
		}
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range list {
		if g := (*p.open.Load())[id]; g != nil {
			for _, s := range *g.copies.Load() {
				if s.node == node && s.good() {
					s.version, s.fresh = version, false
				}
			}
		}
	}
	return nil
}

// raiseLedger makes the version the cluster's.
func (p *Primary) raiseLedger(ctx context.Context, version uint64) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	got, err := p.o.Ledger.RaiseVersion(ctx)
	for err == nil && got < version { // Calls that failed have raised some replicas further.
		got, err = p.o.Ledger.RaiseVersion(ctx)
	}
	if err != nil {
		return fmt.Errorf("raise the replica version: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if got > version {
		p.books.raising = max(p.books.raising, got)
		return fmt.Errorf("the ledger has the replica version %d already, and the replicas have %d", got, version)
	}
	p.books.version = got
	return nil
}
