package replica

import (
	"context"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// linkFailed is called once for a link, by whoever found out.
func (p *Primary) linkFailed(l *link) {
	p.o.Log.Warn("a backup is out of reach; its replicas are made elsewhere", "node", l.node, "error", l.cause)
	p.keeper.wake()
}

// greet forgets the trouble of nodes that have a lease again: they were started anew.
func (p *Primary) greet(before, living []Member) {
	for _, m := range living {
		if !has(before, m.ID) {
			p.welcome(m.ID)
		}
	}
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
