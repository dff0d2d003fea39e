package meta

import (
	"context"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// modelCopy is what a target knows of a copy of what its source owns.
type modelCopy struct {
	ranges  view.Ranges
	attempt int
	token   int // of the source's notes
	from    record.BatchID
	seg     record.SegmentID
	pulled  map[int]bool
}

// modelDeparture is what a source notes for a target that copies.
type modelDeparture struct {
	ranges   view.Ranges
	token    int
	changed  map[int]bool
	withheld bool
	offer    *Copied // the target's word that it has everything: it is handed over now
}

// note notes that a key changes.
func (n *modelNode) note(key int) {
	for _, d := range n.departures {
		if d.ranges.Contains(modelPlace(key)) && n.w.flaw != "changes are not noted" {
			d.changed[key] = true
		}
	}
}

// withholds tells whether a key is not served for it may change hands.
func (n *modelNode) withholds(key int) bool {
	for _, d := range n.departures {
		if d.withheld && d.ranges.Contains(modelPlace(key)) && n.w.flaw != "the source serves on" {
			return true
		}
	}
	return false
}

// copy begins to copy, or begins anew.
func (n *modelNode) copy(id uint64, source *modelNode) {
	m, err := n.member.Copy(context.Background(), id)
	n.w.try(err)
	if err != nil {
		return
	}
	n.store.retract(m.Ranges)
	n.w.tokens++
	n.copies[id] = &modelCopy{ranges: m.Ranges, attempt: m.Attempt, token: n.w.tokens, from: n.store.log.batch, seg: n.store.log.seg, pulled: map[int]bool{}}
	if d := source.departures[id]; d != nil && d.offer != nil {
		return // It notes nothing before it knows what came of that.
	}
	source.departures[id] = &modelDeparture{ranges: m.Ranges, token: n.w.tokens, changed: map[int]bool{}}
}

// copyKey makes a key at the target what it is at the source.
func (n *modelNode) copyKey(key int, source *modelNode) {
	floor := source.store.floor[key]
	if e, there := source.store.index[key]; there {
		n.store.take(e, false, n.store.log.append)
		return
	}
	if old, there := n.store.index[key]; there && old.ver < floor {
		n.store.remove(key, floor)
	}
}

// catchUp copies again what has changed.
func (n *modelNode) catchUp(d *modelDeparture, source *modelNode) {
	for key := range d.changed {
		n.copyKey(key, source)
	}
	d.changed = map[int]bool{}
}

// offer is what the target says when it has everything.
func (n *modelNode) offer(c *modelCopy) *Copied {
	o := &Copied{From: c.from, FromSegment: c.seg, Attempt: c.attempt, Incarnation: n.member.Incarnation()}
	if n.w.flaw == "all that was copied counts" {
		o.From, o.FromSegment = 0, 0
	}
	return o
}

// lateSteps are those of a migration with late ownership.
func (w *modelWorld) lateSteps(m Migration, all *modelSteps) {
	ctx := context.Background()
	source, target := w.node(m.Source), w.node(m.Target)
	d := source.departures[m.ID]
	if source.works() && d != nil && d.withheld {
		all.add(chore, d.offer == nil, func() { delete(source.departures, m.ID) }, "%s waits no longer for %d", m.Source, m.ID)
		all.add(progress, d.offer != nil, func() {
			if w.flaw == "whoever the target is" {
				d.offer.Incarnation = w.now().Incarnation(m.Target)
			}
			if w.flaw == "an offer stands" {
				d.offer.Attempt = m.Attempt
			}
			err := source.member.HandOver(ctx, m.ID, *d.offer)
			w.try(err)
			if err != nil && w.now().Migrations[m.ID].Stage == Copying {
				w.try(source.member.FailMigration(ctx, m.ID, "no"))
			}
		}, "%s hands %d over", m.Source, m.ID)
	}
	if !target.works() || !source.works() || m.Stage != Wanted && m.Stage != Copying {
		return
	}
	err := w.now().Ready(m)
	all.add(progress, err != nil && !isNotYet(err), func() { w.try(target.member.FailMigration(ctx, m.ID, "no")) }, "migration %d fails", m.ID)
	c := target.copies[m.ID]
	anew := c == nil || d == nil || d.token != c.token
	all.add(progress, err == nil && anew && (d == nil || d.offer == nil), func() { target.copy(m.ID, source) }, "%s copies %d", m.Target, m.ID)
	all.add(chore, err == nil && d != nil && d.offer != nil, func() { target.copy(m.ID, source) }, "%s hears nothing and copies %d", m.Target, m.ID)
	if anew || d.offer != nil {
		return
	}
	whole := true
	for key := range modelKeys {
		if c.ranges.Contains(modelPlace(key)) && !c.pulled[key] {
			whole = false
			all.add(progress, true, func() { target.copyKey(key, source); c.pulled[key] = true }, "%s copies key %d", m.Target, key)
		}
	}
	all.add(chore, whole && len(d.changed) > 0, func() { target.catchUp(d, source) }, "%s catches up with %d", m.Target, m.ID)
	all.add(progress, whole && !d.withheld, func() { d.withheld = true }, "%s withholds %d", m.Source, m.ID)
	all.add(progress, whole && d.withheld, func() {
		target.catchUp(d, source)
		d.offer = target.offer(c)
	}, "%s has all of %d", m.Target, m.ID)
}

// copied is how both keys of a come to be at b, while a withholds them.
var copied = []string{"a is asked to give 2 to b in the end", "b copies 1", "b copies key 0", "b copies key 1", "a withholds 1", "b has all of 1"}

func init() {
	flaws["changes are not noted"] = append(append([]string{}, copied[:4]...), "a writes key 0", "a withholds 1", "b has all of 1", "a hands 1 over")
	flaws["the source serves on"] = append(append([]string{}, copied...), "a writes key 0", "a hands 1 over")
	flaws["whoever the target is"] = append([]string{"a writes key 0"}, append(append([]string{}, copied...),
		"b crashes", "the lease of the dead b ends", "b joins", "a hands 1 over", "b sees")...)
	flaws["an offer stands"] = append([]string{"a writes key 0"}, append(append([]string{}, copied...), "b hears nothing and copies 1", "a hands 1 over", "b sees")...)
	flaws["all that was copied counts"] = []string{
		"a writes key 0", "a is asked to give 0 to b in the end", "b copies 1", "b copies key 0", "b crashes", "the lease of the dead b ends",
		"b joins", "a deletes key 0", "a cleans", "...",
	}
	flaws["a copy leaves no trace"] = []string{
		"a writes key 0", "a is asked to give 0 to b in the end", "b copies 1", "b copies key 0", "migration 1 is cancelled",
		"a deletes key 0", "a cleans", "a sees", "b sees", "...", "a crashes", "the lease of the dead a ends", "a is recovered", "...",
	}
}
