package meta

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// modelNode is what a node of a cluster does about migrations and recoveries, with a store of
// few keys. It acts on what it has seen of the metadata, which may be old.
type modelNode struct {
	w      *modelWorld
	id     view.NodeID
	log    record.LogID
	member *Member
	up     bool // its process runs
	wiped  bool // its disk was lost, and the log is where its copies are
	store  *modelStore
	seen   *Snapshot

	arrivals map[uint64]*modelArrival
	stopped  map[uint64]bool // what it is about to return
	taken    []Share         // what it has replayed, and serves, and has no copies of
	sent     []modelSent     // to targets, who have it

	copies     map[uint64]*modelCopy      // of what others own
	departures map[uint64]*modelDeparture // what others copy
}

// modelArrival is a migration to this node after its source has yielded.
type modelArrival struct {
	ranges  view.Ranges
	ceiling map[int]uint64
	pulled  map[int]bool
	adopted bool
}

func (n *modelNode) alive() bool {
	return n.member != nil && n.w.store.stands(&n.member.fence, n.w.now()) == nil
}

func (n *modelNode) works() bool { return n.up && n.alive() }

// enter joins the cluster: with the log it has, or with a new one if others took that over, or it has none.
func (n *modelNode) enter() {
	s := n.w.now()
	fresh := s.Logs[n.log].Retired || n.log == 0 || n.wiped
	if n.wiped = false; fresh {
		n.w.lives++
		n.log = record.LogID(1000 + n.w.lives)
		n.w.logs[n.log] = newModelLog()
		n.up = false
	}
	m, err := n.w.store.enter(context.Background(), Node{ID: n.id, Log: n.log, Address: "x"}, &Lease{})
	n.w.must(err)
	n.member = m
	if !n.up {
		n.open()
	}
	n.see()
}

// open starts the process.
func (n *modelNode) open() {
	s := n.w.now()
	unsettled := s.Unsettled(n.id)
	if n.w.flaw == "only what moves is unsettled" {
		unsettled = nil
		for _, m := range s.Incoming(n.id) {
			unsettled = unsettled.Union(m.Ranges)
		}
	}
	n.store = openModelStore(n.w.logs[n.log], s.Logs[n.log].Floors, s.Holds(n.id), unsettled)
	n.store.flaw = n.w.flaw
	n.arrivals, n.stopped, n.taken, n.up = map[uint64]*modelArrival{}, map[uint64]bool{}, nil, true
	n.sent = nil
	n.copies, n.departures = map[uint64]*modelCopy{}, map[uint64]*modelDeparture{}
}

// crash ends the process. Of side segments that are not adopted some may be left.
func (n *modelNode) crash(keepSide bool) {
	n.up = false
	l := n.store.log
	l.entries = slices.DeleteFunc(slices.Clone(l.entries), func(e modelEntry) bool { return e.unsafe && !keepSide })
	for i := range l.entries {
		l.entries[i].unsafe = false // The next process adopts them.
	}
}

// lose ends the process, and its disk is gone.
func (n *modelNode) lose() {
	n.crash(false)
	n.wiped = true
}

// arriving returns the arrival that a key belongs to.
func (n *modelNode) arriving(key int) (uint64, *modelArrival) {
	for id, a := range n.arrivals {
		if a.ranges.Contains(modelPlace(key)) {
			return id, a
		}
	}
	return 0, nil
}

// serves is the gate.
func (n *modelNode) serves(key int) bool {
	p := modelPlace(key)
	if owner, _ := n.seen.Map.Owner(p); !n.works() || owner != n.id || n.withholds(key) {
		return false
	}
	id, a := n.arriving(key)
	if n.seen.Inheriting(n.id).Contains(p) && (a == nil || n.w.flaw != "serves what it replays") {
		return a == nil && n.hasTaken(key)
	}
	if n.seen.Arriving(n.id).Contains(p) {
		return a != nil && !n.stopped[id]
	}
	return true
}

// hasTaken tells whether the node has replayed all that others' logs have of a key.
func (n *modelNode) hasTaken(key int) bool {
	for _, s := range n.inheritance() {
		if s.Ranges.Contains(modelPlace(key)) && !n.took(s) {
			return false
		}
	}
	return true
}

// took tells whether the node has replayed a share.
func (n *modelNode) took(s Share) bool {
	return slices.ContainsFunc(n.taken, func(o Share) bool {
		return o.Log == s.Log && o.Return == s.Return && o.Ranges.Equal(s.Ranges)
	})
}

// unsettled tells whether what a log says of a key may not be all.
func (n *modelNode) unsettled(key int) bool {
	_, a := n.arriving(key)
	return a != nil || n.store.expects.Contains(modelPlace(key))
}

// cold tells whether a key must be asked for.
func (n *modelNode) cold(key int) bool {
	_, a := n.arriving(key)
	_, there := n.store.index[key]
	_, settled := n.store.settled[key]
	return a != nil && !there && !settled && !a.pulled[key]
}

func (n *modelNode) write(key int) {
	_, a := n.arriving(key)
	ceiling := uint64(0)
	if a != nil {
		ceiling = a.ceiling[key]
	}
	n.w.value++
	n.note(key)
	n.store.put(key, n.w.value, ceiling)
	n.w.acked[key] = n.w.value
}

func (n *modelNode) remove(key int) {
	n.note(key)
	n.store.remove(key, n.store.index[key].ver+1)
	n.w.acked[key] = 0
}

// see learns what is new, and acts on it.
func (n *modelNode) see() {
	n.seen = n.w.now()
	for id, a := range n.arrivals {
		switch m := n.seen.Migrations[id]; {
		case m.Stage == Done && len(n.seen.Arriving(n.id).Intersect(a.ranges)) == 0, m.Stage == Cancelled, m.Stage == Failed:
			delete(n.arrivals, id)
		}
	}
	n.store.expects = n.store.expects.Intersect(n.seen.Unsettled(n.id))
	maps.DeleteFunc(n.copies, func(id uint64, _ *modelCopy) bool { return n.seen.Migrations[id].Stage.Ended() })
	maps.DeleteFunc(n.departures, func(id uint64, _ *modelDeparture) bool { return n.seen.Migrations[id].Stage.Ended() })
	going := n.inheritance()
	n.taken = slices.DeleteFunc(n.taken, func(s Share) bool {
		return !slices.ContainsFunc(going, func(o Share) bool { return o.Log == s.Log && o.Return == s.Return })
	})
}

// yielded tells whether this node, a source, has seen that it does not serve any more, and has its log still.
func (n *modelNode) yielded(id uint64) bool {
	m := n.seen.Migrations[id]
	if n.w.flaw == "answers whatever it is asked" {
		return n.up
	}
	return n.up && m.Source == n.id && m.Stage == Moving && m.SourceLog == n.log
}

// asks is how this node, a target, asks for what it is to get.
func (n *modelNode) asks() Asked { return n.member.Asks(n.store.log.batch, n.store.log.seg) }

// move is what a source does when it hears what a target has asked for. That may not be there any more, nor its log.
func (n *modelNode) move(m Migration, asked Asked) {
	delete(n.w.asked, m.ID)
	if n.w.flaw == "whoever has asked" {
		asked.Incarnation = n.w.now().Incarnation(m.Target)
	}
	_, err := n.member.Move(context.Background(), m.ID, asked)
	n.w.try(err)
}

// arrive begins to serve what has been yielded.
func (n *modelNode) arrive(m Migration, source *modelNode) {
	a := &modelArrival{ranges: m.Ranges, ceiling: map[int]uint64{}, pulled: map[int]bool{}}
	for key := range modelKeys {
		a.ceiling[key] = source.store.ceiling(key)
		n.store.floor[key] = max(n.store.floor[key], a.ceiling[key])
	}
	n.arrivals[m.ID] = a
	n.store.expects = n.store.expects.Subtract(m.Ranges)
}

// pull asks the source for a key.
func (n *modelNode) pull(a *modelArrival, key int, source *modelNode) {
	if e, there := source.store.index[key]; there {
		n.store.take(e, true, n.store.log.appendSide)
	} else if _, here := n.store.index[key]; !here {
		n.store.settled[key] = max(n.store.settled[key], a.ceiling[key])
	}
	a.pulled[key] = true
}

// adopt makes side segments with what places have safe.
func (n *modelNode) adopt(ranges view.Ranges) {
	for i, e := range n.store.log.entries {
		if e.unsafe && ranges.Contains(modelPlace(e.key)) {
			n.store.log.entries[i].unsafe = false
		}
	}
	for key, e := range n.store.index {
		if e.unsafe && ranges.Contains(modelPlace(key)) {
			e.unsafe = false
			n.store.index[key] = e
		}
	}
}

// retract drops what has left, and says so.
func (n *modelNode) retract() {
	ranges := n.seen.Leaving(n.id)
	n.store.retract(ranges)
	n.w.try(n.member.Retracted(context.Background(), ranges, n.store.log.batch, n.store.log.seg))
	n.see()
}

// inheritance is what others' logs have for this node, as far as it knows.
func (n *modelNode) inheritance() (all []Share) {
	for r := range n.seen.Replays() {
		for _, p := range r.Parts {
			if p.Heir == n.id && !p.Done {
				all = append(all, Share{r.Log, p.Ranges, r.Return})
			}
		}
	}
	return all
}

// shares are what this node is to replay together, as far as it knows and can: or what it has replayed
// together, and lacks copies.
func (n *modelNode) shares(taken bool) (group []Share) {
	all := n.inheritance()
	slices.SortFunc(all, func(a, b Share) int { return int(a.Log) - int(b.Log) })
	for len(all) > 0 {
		group, ranges := all[:1:1], all[0].Ranges
		rest := all[1:]
		for more := true; more; {
			more = false
			for i, s := range rest {
				if len(s.Ranges.Intersect(ranges)) > 0 {
					group, ranges, more = append(group, s), ranges.Union(s.Ranges), true
					rest = slices.Delete(slices.Clone(rest), i, i+1)
					break
				}
			}
		}
		planned := !slices.ContainsFunc(group, func(s Share) bool { r, _ := n.seen.Replay(s); return r.Plan == nil })
		lacks := slices.ContainsFunc(group, func(s Share) bool { return !n.took(s) })
		if planned && lacks != taken {
			return group
		}
		all = rest
	}
	return nil
}

// replay is what an heir does. One that is broken off leaves what it has brought.
func (n *modelNode) replay(whole bool) {
	group := n.shares(false)
	ranges := rangesOf(group)
	n.taken = slices.DeleteFunc(n.taken, func(s Share) bool { return len(s.Ranges.Intersect(ranges)) > 0 })
	var entries []modelEntry
	for _, s := range group {
		r, _ := n.seen.Replay(s)
		cut := record.BatchID(math.MaxUint64)
		if r.Return != 0 && n.w.flaw == "a return ends at its cut" {
			cut = r.Plan.Cut
		}
		log := n.w.logs[s.Log]
		if log == nil {
			n.w.fail(fmt.Errorf("%s shall replay log %d, which is gone", n.id, s.Log))
			return
		}
		for _, e := range log.counting(n.seen.Logs[s.Log].Floors, s.Ranges) {
			if e.batch <= cut {
				entries = append(entries, e)
			}
		}
	}
	n.store.replay(entries, n.unsettled, whole)
	if !whole {
		return
	}
	n.taken = append(n.taken, group...)
	if n.w.flaw != "tombstones go while other logs are needed" {
		n.store.expects = n.store.expects.Union(ranges)
	}
	n.w.try(n.member.Serving(context.Background(), group...))
}

func rangesOf(group []Share) (all view.Ranges) {
	for _, s := range group {
		all = all.Union(s.Ranges)
	}
	return all
}

// settle has all copied that was replayed, after which the logs may go that it came from.
func (n *modelNode) settle() {
	group := n.shares(true)
	if n.w.flaw != "side segments are forgotten" {
		n.adopt(rangesOf(group))
	}
	n.w.try(n.member.Recovered(context.Background(), group...))
	n.see()
}

// clean has the cleaner go through all of the log.
func (n *modelNode) clean(keep bool) {
	s := n.w.now()
	held, floors := s.Holds(n.id), s.Logs[n.log].Floors
	n.store.clean(func(e modelEntry) bool {
		counts := held.Contains(modelPlace(e.key)) && above(floors, e)
		if n.w.flaw == "old tombstones are carried on" {
			counts = true
		}
		return counts && (keep || n.unsettled(e.key))
	})
}
